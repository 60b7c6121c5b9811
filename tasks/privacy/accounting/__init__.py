"""What an epsilon is worth: events, their accounting, the ledger. It never looks at data."""
