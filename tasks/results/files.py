"""Names of the files of a suite's results, which the table of stages asks for without any library."""

SUITE = "suite.json"
CSV = ("ledger", "events", "audits", "one_run", "counts", "checks", "spreads")
PARQUET = ("metrics", "attacks", "history", "pairs")
WRITTEN = tuple(sorted((SUITE, "metrics.csv", *(f"{name}.csv" for name in CSV), *(f"{n}.parquet" for n in PARQUET))))
"""What `tasks.results.tables.write` writes, in order of name."""
