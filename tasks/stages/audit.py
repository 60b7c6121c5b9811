"""Stage `audit`: attack the mechanisms of a suite at the budgets its experiments use.

Writes data/runs/<suite>/audit.json: for each mechanism and budget the bound that samples prove, and the largest one
that so many samples could have proved. Needs the parameters and the processed data's schema, no trained model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from tasks import contracts
from tasks.config.params import Params, entry, load
from tasks.config.tasks import TASKS
from tasks.errors import PrivacyError
from tasks.models.social.ledgers import NOISY_SUMS, RIGOROUS, VALUE, published_mechanism
from tasks.privacy.audits import worst_cases
from tasks.privacy.audits.audit import audit, verdict
from tasks.privacy.mechanisms import aggregation, dpsgd
from tasks.privacy.mechanisms.multidimensional import sampled_features
from tasks.privacy.mechanisms.shared_noise import SharedNoise
from tasks.stages import audit_networks
from tasks.stages.command import run_stage
from tasks.stages.common import PROCESSED, RUNS, atomic_write, write_json

SAMPLES = 200_000
"""Outputs drawn for each of the two inputs; they can prove bounds up to about 9.5."""
GRAPHS = 20_000
"""The same of aggregates, which the network itself computes; they can prove bounds up to about 7."""
FITS = 1_000
"""The same where every output is a model."""
AGGREGATING = ("dipsgnn", "priv-u")
"""Models that release noisy aggregates of a graph."""
CONFIDENCE = 0.999
"""Of each bound: a sound mechanism is refuted once in a thousand audits, or less."""
SEED = 0
"""Of every audit's samples: they say something about the mechanism alone, and need only be the same in every run."""


def main(name: str) -> None:
    """Audit the mechanisms of suite `name`."""
    params = load()
    entry("suites", name, params.suites)
    sound = [*_features(name, params), *_counts(name, params), *_releases(name, params), *_submissions(name, params)]
    sound += audit_networks.audits(name, params, SAMPLES, _rng, _record)
    with atomic_write(RUNS / name / "audit.json") as place:
        write_json(place, [*sound, *_published(name, params)])
    for record in sound:
        if record["verdict"] == "refuted":
            claimed, proved = record["epsilon_claimed"], record["audited_epsilon"]
            raise PrivacyError(
                f"{RUNS / name / 'audit.json'}: {record['mechanism']} claims epsilon {claimed:g}, but its outputs "
                f"prove at least {proved:.3g}; mend tasks/privacy before anything is released"
            )


def _features(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """The local mechanisms, at every budget at which an experiment of the suite reads features."""
    releases = {
        (experiment.data, epsilon)
        for experiment in params.experiments.values()
        if experiment.suite == suite and not TASKS[params.suites[suite].task].networks
        for config in experiment.settings().values()
        if (epsilon := params.features_epsilon(experiment, config)) is not None
    }
    audited: set[tuple[object, float]] = set()  # several budgets of a user may mean the same budget per feature
    for data, epsilon in sorted(releases):
        features = contracts.read_schema(PROCESSED / data / "schema.json").features
        sampled = sampled_features(epsilon, len(features))
        widths = [len(feature.columns) for feature in features if feature.kind == "categorical"]
        if len(widths) < len(features) and ("number", epsilon / sampled) not in audited:
            audited.add(("number", epsilon / sampled))
            samples = worst_cases.piecewise_samples(epsilon / sampled, SAMPLES, _rng())
            yield _record("feature", "piecewise", "one number replaced", epsilon / sampled, samples)
        if widths and (max(widths), epsilon / sampled) not in audited:
            audited.add((max(widths), epsilon / sampled))
            samples = worst_cases.unary_samples(epsilon / sampled, max(widths), SAMPLES, _rng())
            yield _record("feature", "optimised unary encoding", "one category replaced", epsilon / sampled, samples)
        samples = worst_cases.multidimensional_samples(features, epsilon, SAMPLES, _rng())
        mechanism = f"{sampled} of {len(features)} features, multidimensional"
        yield _record("feature", mechanism, "all features of one user replaced", epsilon, samples)


def _counts(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """The noisy counts of `dp-popularity` and of rigorous `dpmf`, at every budget at which the suite runs them."""
    settings = {
        (float(config["epsilon"]), int(config["contribution"])) for config in _configs(suite, "dp-popularity", params)
    }
    for epsilon, contribution in sorted(settings):
        samples = worst_cases.counts_samples(epsilon, contribution, SAMPLES, _rng())
        neighbouring = f"one user with {contribution} interactions added or removed"
        yield _record("interaction", "discrete Laplace noise on item counts", neighbouring, epsilon, samples)
    for epsilon in sorted({float(config["epsilon"]) for config in _configs(suite, "dpmf", params, "rigorous")}):
        samples = worst_cases.counts_samples(epsilon, 1, SAMPLES, _rng())
        mechanism = "objective perturbation of item vectors for public random user vectors"
        neighbouring = "one interaction of one user with one item added or removed"
        yield _record("interaction", mechanism, neighbouring, epsilon, samples)


def _published(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """Claims of papers that have no proof to lose: what is refuted here is a finding, not a fault to be mended."""
    for epsilon in sorted({float(config["epsilon"]) for config in _configs(suite, "dpmf", params, "published")}):
        from tasks.models.ranking.neighbours import (
            factorisation_samples,  # fits models: seconds to import, for few suites
        )

        samples = factorisation_samples(epsilon, FITS, _rng())
        mechanism, neighbouring = "objective perturbation of item vectors", "one interaction added or removed"
        yield _record("interaction", mechanism, neighbouring, epsilon, samples)
    aggregated = {
        (float(config["epsilon"]), float(config["delta"]), int(config["epochs"]))
        for model in AGGREGATING
        for config in _configs(suite, model, params, "published")
        if config["epsilon"] is not None and config["steps"] == 1
    }
    for epsilon, delta, epochs in sorted(aggregated):
        from tasks.audits import sessions  # fits models: seconds to import, for few suites

        _, samples = sessions.aggregates("published", SEED, GRAPHS, epsilon, delta, epochs)
        mechanism = "Gaussian noise on aggregates, in training"
        yield _record("edge", mechanism, "one visit of a user's sequence removed", epsilon, samples, delta)
    matrices = {(float(c["epsilon"]), float(c["delta"])) for c in _configs(suite, "edgerand", params)}
    for epsilon, delta in sorted(matrices):
        samples = worst_cases.matrices_samples(aggregation.sigma(1, 1.0, epsilon, delta), SAMPLES, _rng())
        mechanism = "Gaussian noise on adjacency matrices, once"
        yield _record("session graph", mechanism, "one visit of a user's sequence removed", epsilon, samples, delta)
    yield from _published_submissions(suite, params)


def _releases(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """The aggregates of DIPSGNN in its sound accountings: all epochs' releases together, or the one that is kept."""
    modes: tuple[tuple[Literal["rigorous", "cached"], str], ...] = (
        ("rigorous", "one per user and epoch"),
        ("cached", "one for all epochs, of initial vectors"),
    )
    for mode, how in modes:
        budgets = {
            (float(config["epsilon"]), float(config["delta"]), int(config["epochs"]))
            for model in AGGREGATING
            for config in _configs(suite, model, params, mode)
            if config["epsilon"] is not None
        }
        for epsilon, delta, epochs in sorted(budgets):
            from tasks.audits import sessions  # fits models

            _, samples = sessions.aggregates(mode, SEED, GRAPHS, epsilon, delta, epochs)
            mechanism = f"Gaussian noise on aggregates, {how}, and for recommendations"
            yield _record("session graph", mechanism, "one visit of a user's sequence removed", epsilon, samples, delta)


def _submissions(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """What users submit in PrivSR's sound accounting, all iterations together, and noisy sums of ratings."""
    budgets = {
        (c["epsilon"], c["delta"], c["epochs"] * c["iterations_per_epoch"], c["dimension"])
        for c in _configs(suite, "privsr", params, "rigorous")
    }
    for epsilon, delta, iterations, dimension in sorted(budgets):
        # The mean of equal Gaussian releases is a sufficient statistic of all of them.
        noise = SharedNoise("gaussian", dpsgd.noise_multiplier(epsilon, delta, 1.0, iterations) / iterations**0.5)
        samples = worst_cases.submissions_samples(noise, dimension**-0.5, dimension, 1, SAMPLES, _rng(), drew_h=False)
        yield _record("rating", RIGOROUS, f"{VALUE}, in {iterations} iterations", epsilon, samples, delta)
    for epsilon in sorted({float(c["epsilon"]) for c in _configs(suite, "dp-rating-means", params)}):
        samples = worst_cases.submissions_samples(
            SharedNoise("laplace", 1 / epsilon), 1.0, 1, 1, SAMPLES, _rng(), drew_h=False
        )
        yield _record("rating", NOISY_SUMS, VALUE, epsilon, samples)


def _published_submissions(suite: str, params: Params) -> Iterator[dict[str, Any]]:
    """The claims of PrivSR and DPMF, granted that users' vectors never change.

    The planned iterations together, as seen by the recommender, who drew h, and by others.
    """
    budgets = {
        (c["epsilon"], c["epsilon"] * (1 + c.get("beta", 0)), c["epochs"] * c["iterations_per_epoch"], c["dimension"])
        for c in (*_configs(suite, "privsr", params, "published"), *_configs(suite, "dpmf-ratings", params))
        if math.isfinite(c["epsilon"])
    }
    for claimed, epsilon, iterations, dimension in sorted(budgets):
        noise = SharedNoise("laplace", dimension**0.5 / epsilon)
        for drew_h, observer in ((True, "the recommender, who drew h"), (False, "those who did not draw h")):
            samples = worst_cases.submissions_samples(
                noise, dimension**-0.5, dimension, iterations, SAMPLES, _rng(), drew_h=drew_h
            )
            neighbouring = f"{VALUE}, in {iterations} iterations, towards {observer}"
            yield _record("rating", published_mechanism(epsilon), neighbouring, claimed, samples)


def _configs(suite: str, model: str, params: Params, accounting: str | None = None) -> Iterator[dict[str, Any]]:
    """Every configuration with which a suite runs a model, or those with this accounting."""
    for experiment in params.suites[suite].experiments.values():
        if experiment.model == model:
            for config in experiment.settings().values():
                if accounting in (None, config.get("accounting")):
                    yield config


def _rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def _record(
    protects: str, mechanism: str, neighbouring: str, epsilon: float, samples: worst_cases.Samples, delta: float = 0.0
) -> dict[str, Any]:
    result = audit(*samples, CONFIDENCE, delta)
    return {
        "protects": protects,
        "mechanism": mechanism,
        "neighbouring": neighbouring,
        "epsilon_claimed": epsilon,
        "audited_epsilon": result.epsilon,
        "confidence": result.confidence,
        "samples": result.samples,
        "provable": result.provable,
        "verdict": verdict(result, epsilon),
    }


if __name__ == "__main__":
    run_stage(main)
