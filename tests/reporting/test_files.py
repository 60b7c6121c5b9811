"""Results as files: what was written reads back, and a file that is not what was written is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import polars as pl
import pytest

from tasks.errors import DataError
from tasks.reporting import files
from tasks.reporting.core import edges, plots
from tasks.reporting.core.results import GAIN_ORDER, METRIC_ORDER, Results
from tasks.reporting.sections import leaks, reconstruction
from tasks.stages import report
from tasks.stages.papers import describe
from tests.reporting import example_dpcrosue, example_dpvae, example_next, example_privsr
from tests.reporting.example import ROOT

REFERENCE = ROOT / "data/reference/paper_tables.csv"
MADE = {
    "next": (example_next.results, edges.frame),
    "privsr": (example_privsr.results, reconstruction.frame),
    "dpvae": (example_dpvae.results, files.gains),
    "dpcrosue": (example_dpcrosue.weibo, leaks.frame),
}
"""Results, and what attacks.parquet holds of them."""


def recorded(results: Results) -> Results:
    """The same as it is collected: sorted, and of the histories what is shown."""
    systems = tuple(replace(system, history=files.shown_history(system.history)) for system in results.systems)
    metrics = results.metrics.select(files.contracts.METRICS.names).sort(METRIC_ORDER)
    attacked = None if results.edges is None else edges.frame(results)
    return replace(results, systems=systems, metrics=metrics, gains=results.gains.sort(GAIN_ORDER), edges=attacked)


def assert_equal(actual: Results, expected: Results) -> None:
    for name in (field.name for field in fields(Results)):
        left, right = getattr(actual, name), getattr(expected, name)
        if isinstance(right, pl.DataFrame) and name != "gains":
            assert left.equals(right), name
        elif name != "gains":
            assert left == right, name


@pytest.mark.parametrize(("made", "attacks"), MADE.values(), ids=MADE.keys())
def test_results_read_back_equal(
    made: Callable[..., Results], attacks: Callable[[Results], pl.DataFrame], tmp_path: Path
) -> None:
    expected = recorded(made())
    files.write(expected, tmp_path, attacks(expected))
    assert sorted(file.name for file in tmp_path.iterdir()) == list(files.WRITTEN)
    assert expected.runs
    files.write_runs(expected.runs, tmp_path / files.PROVENANCE)
    actual = files.read(tmp_path, REFERENCE, describe)
    assert_equal(replace(actual, published=expected.published), expected)
    again = tmp_path / "again"
    again.mkdir()
    files.write(actual, again, attacks(actual))
    assert all((again / name).read_bytes() == (tmp_path / name).read_bytes() for name in files.WRITTEN)


@pytest.mark.parametrize(
    ("synthetic", "of", "kind"), [(False, "", "real"), (False, "ml-100k", "part"), (True, "ml-100k", "synthetic")]
)
def test_every_table_says_of_what_kind_of_data_it_is(
    real: Results, tmp_path: Path, synthetic: bool, of: str, kind: str
) -> None:
    results = replace(real, synthetic=synthetic, stands_for=of)
    files.write(results, tmp_path, files.gains(results))
    tables = [pl.read_csv(file) for file in tmp_path.glob("*.csv")]
    tables += [pl.read_parquet(file) for file in tmp_path.glob("*.parquet")]
    tables += report.tables(results, report.report_of(results.paper), []).values()
    tables += [table for name, table in plots.tables(results, 10).items() if name.endswith(".csv")]
    assert len(tables) == 10
    assert all(set(table["data"]) <= {kind} for table in tables if len(table))
    assert all("data" in table.columns for table in tables)
    again = files.read(tmp_path, REFERENCE, describe)
    assert (again.stands_for, again.synthetic) == (of, synthetic)
    assert "data" not in again.metrics.columns


def test_gains_read_back_equal(every: Results, tmp_path: Path) -> None:
    files.write(every, tmp_path, files.gains(every))
    assert files.read(tmp_path, REFERENCE, describe).gains.equals(every.gains.sort(GAIN_ORDER))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("results.json", None, r"results\.json: not found"),
        ("results.json", "{", r"results\.json: not readable as JSON"),
        ("results.json", '{"systems": []}', "not the results of a suite"),
        ("metrics.parquet", "PAR1", r"metrics\.parquet: not a readable table"),
        ("ledger.json", '{"entries": [{}], "sentences": [], "spent": []}', "not the results of a suite"),
        ("provenance.json", '{"machines": [], "runs": [{"machine": 0}]}', r"provenance\.json: not a record of runs"),
    ],
)
def test_what_is_no_results_is_refused_in_one_line(
    real: Results, tmp_path: Path, file: str, content: str | None, message: str
) -> None:
    files.write(real, tmp_path, files.gains(real))
    (tmp_path / file).unlink(missing_ok=True)
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        files.read(tmp_path, REFERENCE, describe)
    assert "\n" not in str(caught.value)


def test_entries_that_seeds_have_in_common_stand_there_once(every: Results, tmp_path: Path) -> None:
    files.write(every, tmp_path, files.gains(every))
    content = json.loads((tmp_path / "ledger.json").read_text())
    texts = [json.dumps(entry) for entry in content["entries"]]
    assert len(texts) == len(set(texts))
    assert all(line["seeds"] == [0, 1, 2] for line in content["spent"])


def test_means_stand_beside_their_deviation_and_count() -> None:
    rows = [("full/ndcg", 5, 0, 0.25), ("full/ndcg", 5, 1, 0.75), ("full/ndcg", 10, 0, 0.5), ("iterations", None, 0, 7)]
    table = pl.DataFrame(
        rows, schema={"metric": pl.String, "k": pl.Int32, "seed": pl.Int64, "value": pl.Float64}, orient="row"
    )
    about = {key: pl.lit(key) for key in ("suite", "experiment", "dataset", "model", "setting")}
    assert files.means(table.with_columns(**about)).write_csv().splitlines() == [
        "experiment,setting,metric,n,mean,std,mean@5,std@5,mean@10,std@10",
        "experiment,setting,full/ndcg,1,,,,,0.500000,",
        "experiment,setting,full/ndcg,2,,,0.500000,0.353553,,",
        "experiment,setting,iterations,1,7.000000,,,,,",
    ]


def test_training_without_validation_has_a_curve_of_its_loss_alone(real: Results) -> None:
    system = real.systems[0]
    records = [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}]  # what networks' embedders record
    results = replace(real, systems=(replace(system, history={"base": {"0": records}}), *real.systems[1:]))
    written = plots.tables(results, 10)
    assert written[f"metrics/{system.experiment}/loss.tsv"]["loss"].to_list() == [0.5, 0.25]
    assert f"metrics/{system.experiment}/valid.tsv" not in written
