"""The summary says what the numbers say, and changes when they do."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from tasks.reporting import findings, summary
from tasks.reporting.results import Results

K = 10


def shifted(results: Results, model: str, metric: str, by: float) -> Results:
    """The same results with one metric of one model moved."""
    here = (pl.col("model") == model) & (pl.col("metric") == metric)
    value = pl.when(here).then(pl.col("value") + by).otherwise(pl.col("value"))
    return replace(results, metrics=results.metrics.with_columns(value=value))


def test_a_private_system_below_dp_popularity_is_named(real: Results) -> None:
    assert "gerai −" in summary.lead(real, K)
    assert "claims privacy and yet ranks worse than dp-popularity" in summary.lead(real, K)
    better = shifted(real, "gerai", "full/ndcg", 0.2)
    assert "claims privacy" not in summary.lead(better, K)


def test_ranking_sentences_follow_the_sign(real: Results) -> None:
    for by, verb in ((1.0, "ranks better"), (-1.0, "ranks worse")):
        only = shifted(real, "gcn", "full/ndcg", by)
        only = replace(only, systems=tuple(one for one in only.systems if one.model in ("popularity", "gcn")))
        (sentence,) = [line for line in summary.ranking(only, K) if "NDCG" in line]
        assert sentence.startswith("Against popularity on NDCG@10 (full ranking): gcn ")
        assert verb in sentence


def test_a_difference_as_large_as_its_noise_is_not_decided(real: Results) -> None:
    # Differences +1, -1, +0.1 over three seeds: no test at 5 % can call that a difference.
    noise = pl.col("seed").replace_strict({0: 1.0, 1: -1.0, 2: 0.1}, return_dtype=pl.Float64)
    moved = pl.when(pl.col("model") == "gcn").then(pl.col("value") + noise).otherwise(pl.col("value"))
    noisy = replace(real, metrics=real.metrics.with_columns(value=moved))
    found = {one.system.model: one for one in findings.beside_yardsticks(noisy, "full/ndcg", K)}
    assert not found["gcn"].found


def test_a_single_seed_decides_nothing(real: Results) -> None:
    single = replace(real, metrics=real.metrics.filter(pl.col("seed") == 0))
    assert not any(one.found for one in findings.beside_yardsticks(single, "full/ndcg", K))
    assert "rank better" not in summary.lead(single, K)


def test_attackers_are_named_only_where_they_gain(real: Results) -> None:
    sentences = [line for line in summary.attacks(real, K) if line.startswith("Gender, beating the majority guess")]
    assert len(sentences) == 1
    named = sentences[0].split("; ")
    assert "neural network against bpr, gcn, gerai and gerai-nf, most against gcn +0.08" in named[0]
    assert named[1] == "decision tree, Gaussian process, k nearest neighbours and naive Bayes against no system."


def test_recommendations_that_add_nothing_to_the_ratings_are_not_named(real: Results) -> None:
    assert all(not one.found for one in findings.above_ratings(real, "gender", "knn", K))
    found = {one.system.model for one in findings.above_ratings(real, "gender", "neural", K) if one.found}
    assert {"bpr", "gcn", "gerai", "gerai-nf"} <= found


def test_the_first_paragraph_tells_ratings_from_recommendations(real: Results) -> None:
    assert "the recommendations help it on age against bpr, gcn" in summary.lead(real, K)
    metric = pl.col("metric").str.contains("/neural/")
    same = real.metrics.with_columns(value=pl.when(metric).then(0.9).otherwise(pl.col("value")))
    lead = summary.lead(replace(real, metrics=same), K)
    assert "beats the majority guess on age against all 6 systems" in lead
    assert "more than the ratings alone is not shown for any system" in lead


def test_a_gain_of_too_few_users_is_not_named_however_steady(real: Results) -> None:
    """A system without randomness gains the same at every seed: 4 of 189 users could be chance, 5 could not."""
    metric = "attribute/age/knn/advantage"
    here = (pl.col("model") == "popularity") & (pl.col("metric") == metric)
    for n_users, named in ((4, False), (5, True)):
        value = pl.when(here).then(n_users / real.n_targets).otherwise(pl.col("value"))
        steady = replace(real, metrics=real.metrics.with_columns(value=value))
        assert findings.above_chance(steady, "age", "knn", K)[0].found is named
    assert 0.5**findings.FEWEST_USERS < findings.SIGNIFICANCE < 0.5 ** (findings.FEWEST_USERS - 1)


def test_few_attacked_users_leave_a_wide_margin() -> None:
    assert findings.sampling_margin(0.7, 189) == pytest.approx(0.0724, abs=1e-4)  # Clopper-Pearson of 132 in 189
    assert findings.sampling_margin(0.7, 18_900) < 0.008


def test_gains_beyond_that_margin_are_told_apart(real: Results) -> None:
    last = summary.attacks(real, K)[-1]
    assert "189 attacked users" in last
    assert "on gender (neural network against gcn)" in last
    assert "gerai" not in last.partition("Larger gains")[2]


def test_budgets_name_what_is_covered_and_what_is_not(real: Results) -> None:
    assert "holds for dp-popularity (ε = 1). For a part only: gerai (features, ε = 20)" in summary.lead(real, K)
    told = {line.partition(":")[0]: line for line in summary.budgets(real)}
    assert "interactions: claimed 1, accounted 1, audited 0.93 or more" in told["dp-popularity"]
    assert "interactions: claimed 0.4, accounted none, not audited" in told["gerai"]


def test_synthetic_data_are_called_so_in_the_first_paragraph(demo: Results, real: Results) -> None:
    assert "synthetic data set demo" in summary.lead(demo, K)
    assert "synthetic" not in summary.lead(real, K)
