"""What is committed follows from what is committed: verdicts and comparisons from tables, costs from provenance."""

import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tasks.config.tasks import ATTACKS, resolve
from tasks.results import files, reproduction, tables
from tasks.results.load import read_runs
from tasks.results.printed import Against
from tasks.stages import report
from tests.parameters import ROOT
from tests.results import costs
from tests.results.made import COMMITTED, committed, paper

RESULTS = ROOT / "data/results"
PRIVSR = ("privsr", "privsr-epinions", "privsr-yelp-hin")
AT_RANDOM = 0.029
"""NDCG@100 of lists at random on MovieLens 100K (docs/choices-dpvae.md)."""


@pytest.mark.parametrize("suite", COMMITTED)
def test_judging_committed_results_gives_the_committed_files(suite: str) -> None:
    for name, frame in report.judged(committed(suite)).items():
        assert frame.write_csv() == (RESULTS / suite / f"{name}.csv").read_text(encoding="utf-8"), name


@pytest.mark.parametrize("suite", COMMITTED)
def test_committed_tables_are_written_again_to_the_byte(suite: str, tmp_path: Path) -> None:
    known = {name: tables.read_table(RESULTS / suite, name) for name in (*tables.CSV, *files.PARQUET)}
    tables.write(tmp_path, tables.read_suite(RESULTS / suite), known)
    assert [
        name for name in files.WRITTEN if (tmp_path / name).read_bytes() != (RESULTS / suite / name).read_bytes()
    ] == []


@pytest.mark.parametrize("suite", COMMITTED)
def test_committed_ledger_lines_are_made_of_their_entries_again(suite: str) -> None:
    of = committed(suite)
    models = {system.experiment: system.model for system in of.suite.systems}
    spent = [
        tables.Spent(line.experiment, line.setting, seed, line.entry, line.network)
        for line in of.lines
        for seed in line.seeds
    ]
    again = tables.ledger(spent, models)
    assert again["ledger"].equals(of.ledger)
    assert again["events"].equals(of.events)


@pytest.mark.parametrize("suite", COMMITTED)
def test_attacks_that_follow_from_metrics_are_the_committed_ones(suite: str) -> None:
    of = committed(suite)
    kind = ATTACKS[of.suite.attack["kind"]] if of.suite.attack else None
    if kind is not None and kind.table is not None:
        actual = resolve(kind.table)(of, paper(suite).overlap)
        assert_frame_equal(actual, of.attacks, check_dtypes=False, rel_tol=1e-9)


@pytest.mark.parametrize("suite", COMMITTED)
def test_every_reversed_pair_has_a_reason(suite: str) -> None:
    of, described = committed(suite), paper(suite)
    against = Against(of, described)
    every = reproduction.pairs(against, reproduction.blocks(against), described.reasons)
    turned = [pair for pair in every if pair.order == "reversed"]
    assert [f"{pair.better.method} before {pair.worse.method}" for pair in turned if pair.reason is None] == []
    assert all(pair.reason is None for pair in every if pair.order != "reversed")
    assert not every or not of.suite.synthetic


def test_no_vectors_predict_occupations_better_than_the_majority() -> None:
    of = committed("dpcrosue")
    systems = [system for system in of.suite.compared if system.label != "attributes"]
    assert len(systems) > 10
    for system in systems:
        right, majority = (
            of.mean(system.experiment, f"foursquare/occupation/{name}") or 0.0
            for name in ("micro-f1", "majority/micro-f1")
        )
        assert right < majority, system.label


@pytest.mark.parametrize("suite", PRIVSR)
def test_the_papers_attack_errs_more_than_published_ratings_allow(suite: str) -> None:
    attacks = ["reconstruction/published/mae", "reconstruction/public/mae"]
    metrics = committed(suite).metrics.filter(pl.col("metric").is_in(attacks))
    by_run = metrics.pivot(on="metric", index=["experiment", "setting", "seed"], values="value")
    assert by_run.height > 200
    means = by_run.group_by("experiment", "setting").mean()
    assert (means[attacks[0]] > means[attacks[1]]).all()


@pytest.mark.parametrize("suite", PRIVSR)
def test_noise_ends_training_where_any_rating_is_sensitive(suite: str) -> None:
    """An epoch is 30 iterations; patience adds five to the best."""
    last = committed(suite).metrics.filter(
        (pl.col("metric") == "iterations")
        & ~pl.col("setting").str.contains("sensitive_share=0.0", literal=True)
        & ~pl.col("setting").str.contains("learning_rate")
    )
    best = pl.col("value") / 30 - 5
    small = pl.col("setting").str.contains(r"epsilon=0\.0[15](,|$)")
    for name, rows, most in (("privsr", small, 4), ("dpmf", pl.lit(True), 7)):
        epochs = last.filter(pl.col("experiment").str.ends_with(f"-{name}") & rows).select(best).to_series()
        assert len(epochs)
        assert epochs.is_between(1, most).all(), name


def test_the_noise_of_dp_vae_leaves_nothing_to_learn() -> None:
    """Its length against the longest that all clipped gradients of a step can have together, and what runs come to.

    σ = √(2 log(1.25 / δ)) S / ε in each of l numbers for each of U users, against U gradients of length S.
    """

    def ratio(numbers: int, users: int) -> float:
        return float(np.sqrt(2 * np.log(1.25 / 0.001) * numbers / users))

    of, described = committed("dpvae"), paper("dpvae")
    assert ratio(275_802, 10) == pytest.approx(627, abs=1)
    for label, numbers in (("svd", 100 * 1_682), ("mf", 21 * 1_682)):
        config = of.systems[f"dpvae-{label}"].config
        assert config["delta"] == 0.001
        assert ratio(numbers, config["batch_size"]) > 99
    first = next(reason for reason in described.reasons if reason.name == "printed above what the printed noise leaves")
    against = Against(of, described)
    every = reproduction.pairs(against, reproduction.blocks(against), described.reasons)
    covered = [pair for pair in every if pair.reason == first]
    assert covered
    for pair in covered:
        assert pair.better.printed > 3 * pair.better.mean
        assert pair.column.published != "ndcg@100" or pair.better.mean < 2 * AT_RANDOM
    less, popularity = (of.mean(f"dpvae-{name}", "full/ndcg", 100, setting) or 0.0
                        for name, setting in (("dpvae", "epsilon_max=8.0"), ("popularity", "base")))  # fmt: skip
    assert less < 0.2 * popularity, "nor with an eighth of the noise"


def test_most_printed_differences_of_few_users_are_below_their_standard_error() -> None:
    of, described = committed("gerai"), paper("gerai")
    against = Against(of, described)
    every = reproduction.pairs(against, reproduction.blocks(against), described.reasons)
    few = [pair for pair in every if pair.reason and pair.reason.metrics == ("f1_*",)]
    blurm = [pair for pair in every if pair.reason and pair.reason.metrics == ("f1_gender*",)]
    assert {pair.better.method for pair in blurm} == {"Blurm"}
    assert all(pair.shown for pair in blurm), "Blurm's gender is no guess about few users"
    error = 0.5 / np.sqrt(of.suite.n_targets)
    assert error == pytest.approx(0.036, abs=0.001)
    gaps = [abs(pair.better.printed - pair.worse.printed) for pair in few]  # type: ignore[operator]  # both are printed
    assert sum(gap < error for gap in gaps) > len(few) / 2


def test_the_table_of_costs_has_what_provenance_says() -> None:
    assert costs.PLACE.read_text(encoding="utf-8") == costs.written()


def test_every_run_is_of_a_committed_revision_in_the_history_of_this_one() -> None:
    """A shallow clone, which knows no history, cannot say."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
    if git(["git", "rev-parse", "--is-shallow-repository"]).stdout.strip() == "true":
        pytest.skip("a shallow clone")
    history = set(git(["git", "rev-list", "HEAD"]).stdout.split())
    for suite in COMMITTED:
        assert {run.revision for run in read_runs(RESULTS / suite / "provenance.json")} <= history, suite
    for trials in RESULTS.glob("*/tuning.csv"):
        assert {*pl.read_csv(trials)["revision"]} <= history, trials.parent.name
