"""The `dprec` command, the DVC graph as a Prefect flow, and schedules."""
