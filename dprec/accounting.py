"""Accounting: what releases about the same data cost together, as an upper bound on (ε, δ)."""

from tasks.privacy.accounting.account import Spent, account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms.dpsgd import noise_multiplier

__all__ = ["Event", "LedgerEntry", "Spent", "account", "noise_multiplier"]
