"""Have Great Expectations judge tables by their rules; write its data docs; return the verdict.

Great Expectations is imported only when `run` is called (the import takes seconds). Its context lives in memory and
nothing is sent anywhere: analytics are off, and the pages that `tasks.quality.docs` writes load nothing.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.quality.counting import Counts, count, count_failures, count_misfits, first_rows, height, label
from tasks.quality.rules import VISIBLE, Rule, Table, in_set

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

LONG_TABLE = 1_000_000
"""Rows beyond which a table is judged by its counts of failing rows: handing it over takes seconds and gigabytes."""


def run(contract: str, name: str, tables: Sequence[Table], checked: Mapping[str, str], docs: Path) -> dict[str, Any]:
    """Judge `tables` and write browsable data docs.

    Args:
        contract: the layer, such as `raw`.
        name: what of that layer, such as `ml-100k`.
        tables: the tables with their rules, as the modules beside this one give them.
        checked: file -> SHA-256 of what was read.
        docs: an existing, empty folder; gets index.html and one page per table.

    Returns:
        The verdict: contract, name, success, evaluated, failed, checked, and under `results` for each rule the table,
        expectation, column, success, unexpected_count (failing rows; for a number of rows, how many are too few or
        too many), rows (numbers of the first failing rows) and detail (in words, with the ids of those rows).
    """
    from tasks.quality.docs import write_docs

    results: list[dict[str, Any]] = []
    outcomes: list[tuple[str, int, ExpectationSuiteValidationResult]] = []
    with _silence():
        context = _context()
        for table in tables:
            rows = height(table.frame)
            counts = count(table) if rows > LONG_TABLE else None
            handed = plain_table(table) if counts is None else count_failures(table, counts)
            outcome = _validate(context, f"{contract}/{name}", handed)
            outcomes.append((table.name, rows, outcome))
            results += _results(table, rows, counts, outcome)
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
        write_docs(verdict, outcomes, docs)
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


def plain_table(table: Table) -> Table:
    """The columns that rules are about, in memory; for a rule with a test of its own, a column that holds the test."""
    columns: dict[str, pl.Expr] = {}
    rules: list[Rule] = []
    for number, rule in enumerate(table.rules):
        if rule.test is None:
            columns |= {column: pl.col(column) for column in rule.columns}
            rules.append(rule)
        else:
            name = label(number, rule)
            columns[name] = rule.test
            rules.append(in_set(name, (True,)))
    frame = table.frame.lazy().select(**columns) if columns else table.frame.lazy()
    return Table(table.name, frame.collect(engine="streaming"), tuple(rules))


def expectation(rule: Rule) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the same rule in Great Expectations; of one with a test, for a column that holds it."""
    limits = {"min_value": rule.low, "max_value": rule.high}
    if rule.kind == "row_count":
        return "expect_table_row_count_to_be_between", limits
    if rule.kind == "unique" and len(rule.columns) > 1:
        return "expect_compound_columns_to_be_unique", {"column_list": list(rule.columns)}
    others: dict[str, tuple[str, dict[str, Any]]] = {
        "not_null": ("not_be_null", {}),
        "null": ("be_null", {}),
        "unique": ("be_unique", {}),
        "between": ("be_between", limits),
        "not_blank": ("match_regex", {"regex": VISIBLE}),
    }
    name, arguments = others.get(rule.kind, ("be_in_set", {"value_set": list(rule.values)}))
    return f"expect_column_values_to_{name}", {"column": rule.column, **arguments}


def _validate(context: EphemeralDataContext, suite_name: str, table: Table) -> ExpectationSuiteValidationResult:
    from great_expectations import ExpectationSuite

    assert isinstance(table.frame, pl.DataFrame)
    source = context.data_sources.add_or_update_pandas("tables")
    batches = source.add_dataframe_asset(table.name).add_batch_definition_whole_dataframe(table.name)
    batch = batches.get_batch({"dataframe": table.frame.to_pandas()})
    expectations = []
    for number, rule in enumerate(table.rules):
        name, arguments = expectation(rule)
        expectations.append({"type": name, "kwargs": arguments, "meta": {"rule": number}})
    suite = ExpectationSuite(name=suite_name, expectations=expectations)
    return batch.validate(suite, result_format="SUMMARY")


def _results(
    table: Table, height: int, counts: Counts | None, outcome: ExpectationSuiteValidationResult
) -> list[dict[str, Any]]:
    """Results of `table`, in the order of its rules, from the outcome of judging it whole, or by `counts`."""
    outcomes = {}
    for result in outcome.results:
        assert result.expectation_config is not None
        outcomes[result.expectation_config.meta["rule"]] = result
    results = []
    for number, rule in enumerate(table.rules):
        result = outcomes[number]
        if result.exception_info.get("raised_exception", True):
            raise RuntimeError(
                f"table {table.name}: {rule.column} {rule.words} was not judged: {result.exception_info}"
            )
        broken, detail = 0, rule.words
        rows: list[int] = []
        if not result.success:
            if counts is not None:
                broken = counts.broken[number]
            else:
                broken = count_misfits(rule, height) if rule.kind == "row_count" else result.result["unexpected_count"]
            rows, texts = first_rows(table, rule)
            where = f"{broken} of {height} rows: {'; '.join(texts)}" if rows else f"has {height}"
            detail = f"{rule.words}; {where}"
        results.append(
            {
                "table": table.name,
                "expectation": expectation(rule)[0],
                "column": rule.column,
                "success": bool(result.success),
                "unexpected_count": broken,
                "rows": rows,
                "detail": detail,
            }
        )
    return results
