"""Have Great Expectations judge tables by their rules; write its data docs; return the verdict.

Its suite expects of every rule that no row breaks it. What it is handed is a table with a row for each rule of all
tables: the number of rows that break it (`tasks.quality.rules`), however long the tables are. An expectation takes
hundredths of a second, however many rows it judges, so there is one for all rules. Great Expectations is imported only
when `run` is called (the import takes seconds). Its context lives in memory and nothing is sent anywhere: analytics are
off.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tasks.quality.rules import Rule, Table, count, first_rows

if TYPE_CHECKING:
    from tasks.core.rows import Row

VIEWS = Path(__file__).parent / "views"


def run(contract: str, name: str, tables: Sequence[Table], checked: Mapping[str, str], docs: Path) -> Row:
    """Judge `tables` and write browsable data docs.

    Args:
        contract: the layer, such as `raw`.
        name: what of that layer, such as `ml-100k`.
        tables: the tables with their rules, as the modules of contracts give them.
        checked: file -> SHA-256 of what was read.
        docs: an existing, empty folder; gets index.html and one page per table.

    Returns:
        The verdict: contract, name, success, evaluated, failed, checked, and under `results` for each rule the table,
        expectation (its kind), column, success, unexpected_count (failing rows; for a number of rows, how many are too
        few or too many), rows (numbers of the first failing rows) and detail (in words, with the ids of those rows).
    """
    counts = [count(table) for table in tables]
    met = iter(_outcomes(f"{contract}/{name}", [number for _, broken in counts for number in broken]))
    results = [
        _result(table, rule, number, rows, next(met))
        for table, (rows, broken) in zip(tables, counts, strict=True)
        for rule, number in zip(table.rules, broken, strict=True)
    ]
    failed = sum(not result["success"] for result in results)
    verdict = {
        "contract": contract,
        "name": name,
        "success": failed == 0,
        "evaluated": len(results),
        "failed": failed,
        "checked": dict(checked),
        "results": results,
    }
    _write_docs(verdict, {table.name: rows for table, (rows, _) in zip(tables, counts, strict=True)}, docs)
    return verdict


@contextmanager
def _silence() -> Iterator[None]:
    """Great Expectations logs and warns about itself; what matters is in the verdict."""
    logger = logging.getLogger("great_expectations")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@_silence()
def _outcomes(suite_name: str, broken: list[int]) -> list[bool]:
    """Of every rule, of which so many rows break each, whether it is met."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
    )
    context = gx.get_context(project_config=config, mode="ephemeral")
    frame = pl.DataFrame({"broken": pl.Series(broken, dtype=pl.Int64)}).to_pandas()
    batch = context.data_sources.pandas_default.read_dataframe(frame)
    kept = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "broken", "min_value": 0, "max_value": 0},
    }
    [judged] = batch.validate(gx.ExpectationSuite(suite_name, [kept]), result_format="COMPLETE").results
    unmet = set(judged.result["unexpected_index_list"])
    assert judged.result["element_count"] == len(broken)
    assert judged.success is not bool(unmet)
    return [number not in unmet for number in range(len(broken))]


def _result(table: Table, rule: Rule, broken: int, n_rows: int, success: bool) -> dict[str, object]:
    """What the verdict says of a rule, which so many of the table's rows break."""
    detail, rows = rule.words, list[int]()
    if not success:
        rows, texts = first_rows(table, rule)
        where = f"{broken} of {n_rows} rows: {'; '.join(texts)}" if rows else f"has {n_rows}"
        detail = f"{rule.words}; {where}"
    return {
        "table": table.name,
        "expectation": rule.kind,
        "column": rule.column,
        "success": success,
        "unexpected_count": broken,
        "rows": rows,
        "detail": detail,
    }


def _write_docs(verdict: Row, rows: Mapping[str, int], folder: Path) -> None:
    """Write index.html (the verdict, the failing rows, the files that were read) and one page per table.

    They open from a folder, without a network: all is inline, and text of the data escaped.

    rows: name of each table -> how many it has.
    """
    from jinja2 import Environment, FileSystemLoader

    views = Environment(loader=FileSystemLoader(VIEWS), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages: list[Row] = []
    for table, n_rows in rows.items():
        results = [result for result in verdict["results"] if result["table"] == table]
        failed = [result for result in results if not result["success"]]
        file = re.sub(r"[^A-Za-z0-9=.]+", "-", table) + ".html"
        pages.append({"table": table, "file": file, "rows": n_rows, "results": results, "failed": failed})
    about = {"title": f"{verdict['contract']}/{verdict['name']}", "verdict": verdict, "pages": pages}
    for page in pages:
        text = views.get_template("table.html.j2").render(**about, page=page)
        (folder / page["file"]).write_text(text, encoding="utf-8")
    (folder / "index.html").write_text(views.get_template("index.html.j2").render(**about), encoding="utf-8")
