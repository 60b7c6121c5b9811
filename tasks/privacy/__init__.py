"""Mechanisms, their accounting, the ledger, and audits."""
