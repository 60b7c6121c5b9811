"""The report of a suite: tables beside the published ones, figures, privacy ledger, quality and provenance."""
