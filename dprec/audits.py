"""Audits: what ε outputs prove, as a lower bound at a stated confidence."""

from tasks.privacy.audits.audit import Audit, audit, verdict
from tasks.privacy.audits.one_run import OneRun
from tasks.privacy.audits.one_run import audit as audit_one_run

__all__ = ["Audit", "OneRun", "audit", "audit_one_run", "verdict"]
