"""Have Great Expectations judge tables by their rules; write its data docs; return the verdict.

Its suite of a table expects of every rule that no row breaks it; what it is handed are the numbers of rows that do
(`tasks.quality.rules`), however long the table is. It is imported only when `run` is called (the import takes
seconds). Its context lives in memory and nothing is sent anywhere: analytics are off.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.quality.rules import Counts, Table, count, first_rows

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

VIEWS = Path(__file__).parent / "views"


def run(contract: str, name: str, tables: Sequence[Table], checked: Mapping[str, str], docs: Path) -> dict[str, Any]:
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
    results: list[dict[str, Any]] = []
    rows: dict[str, int] = {}
    with _silence():
        context = _context()
        for table in tables:
            counts = count(table)
            rows[table.name] = counts.rows
            results += _results(table, counts, _validate(context, f"{contract}/{name}", table, counts))
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
        _write_docs(verdict, rows, docs)
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


def _context() -> EphemeralDataContext:
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
    return gx.get_context(project_config=config, mode="ephemeral")


def _validate(context: EphemeralDataContext, suite_name: str, table: Table, counts: Counts) -> list[bool]:
    """Of every rule whether it is met."""
    from great_expectations import ExpectationSuite

    names = [f"{number}. {rule.column or 'table'} {rule.words}" for number, rule in enumerate(table.rules, start=1)]
    frame = pl.DataFrame({name: [broken] for name, broken in zip(names, counts.broken, strict=True)})
    source = context.data_sources.add_or_update_pandas("tables")
    batches = source.add_dataframe_asset(table.name).add_batch_definition_whole_dataframe(table.name)
    batch = batches.get_batch({"dataframe": frame.to_pandas()})
    expectations = [
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": name, "min_value": 0, "max_value": 0}}
        for name in names
    ]
    outcome = batch.validate(ExpectationSuite(name=suite_name, expectations=expectations))
    met = {result.expectation_config.kwargs["column"] for result in outcome.results if result.success}  # type: ignore[union-attr]
    return [name in met for name in names]


def _results(table: Table, counts: Counts, met: list[bool]) -> list[dict[str, Any]]:
    """Results of `table`, in the order of its rules."""
    results = []
    for rule, broken, success in zip(table.rules, counts.broken, met, strict=True):
        detail = rule.words
        rows: list[int] = []
        if not success:
            rows, texts = first_rows(table, rule)
            where = f"{broken} of {counts.rows} rows: {'; '.join(texts)}" if rows else f"has {counts.rows}"
            detail = f"{rule.words}; {where}"
        results.append(
            {
                "table": table.name,
                "expectation": rule.kind,
                "column": rule.column,
                "success": success,
                "unexpected_count": broken,
                "rows": rows,
                "detail": detail,
            }
        )
    return results


def _write_docs(verdict: dict[str, Any], rows: Mapping[str, int], folder: Path) -> None:
    """Write index.html (the verdict, the failing rows, the files that were read) and one page per table.

    They open from a folder, without a network: all is inline, and text of the data escaped.

    Args:
        rows: name of each table -> how many it has.
    """
    from jinja2 import Environment, FileSystemLoader

    views = Environment(loader=FileSystemLoader(VIEWS), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages: list[dict[str, Any]] = []
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
