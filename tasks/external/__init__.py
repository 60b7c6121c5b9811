"""Audits of someone else's recommender, from the files that it read and wrote; docs/audit.md is the user's page."""
