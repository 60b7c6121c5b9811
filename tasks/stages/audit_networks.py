"""Audits of the mechanisms that perturb networks, at every budget that a suite reads.

What is audited of friendships is a cell of the rigorous filter and the noise of their number; of the published filter
nothing finite follows that samples could be held against. Of words it is the cost of a distance of 1, supposing
vectors that are public: fitted to the texts themselves, as published, they have no guarantee to refute. Rigorous words
have so little for a distance that samples would show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tasks import contracts
from tasks.config.params import Params
from tasks.config.tasks import TASKS
from tasks.contracts import Feature
from tasks.privacy.audits import worst_cases
from tasks.privacy.mechanisms.multidimensional import sampled_features
from tasks.stages.common import PROCESSED

Record = Callable[[str, str, str, float, worst_cases.Samples], dict[str, Any]]
"""(protects, mechanism, neighbouring, epsilon, samples) -> what they prove."""


def releases(suite: str, params: Params) -> list[str]:
    """Entries of `perturbed` that experiments and alignments of a suite read, by themselves or through embeddings."""
    read = {experiment.features for experiment in params.suites[suite].experiments.values()}
    read |= {pair.of for pair in params.aligned.values() if pair.suite == suite}
    read |= {params.aligned[name].of for layer, _, name in _split(read) if layer == "aligned"}
    read |= {params.embeddings[name].networks for layer, _, name in _split(read) if layer == "embeddings"}
    return sorted(name for layer, _, name in _split(read) if layer == "perturbed")


def audits(suite: str, params: Params, n: int, rng: Callable[[], np.random.Generator], record: Record) -> Iterator[Any]:
    """One record for each mechanism and budget.

    Args:
        n: samples of either input. rng: a new generator for each audit.
    """
    if not TASKS[params.suites[suite].task].networks:
        return
    done: set[tuple[object, ...]] = set()

    def new(*key: object) -> bool:
        known = key in done
        done.add(key)
        return not known

    for name in releases(suite, params):
        release = params.perturbed[name]
        assert release.mechanism == "dpcrosue", "params.load lets nothing else pass"
        source = PROCESSED / release.data
        networks = contracts.read_schema(source / "schema.json").networks
        schemas = {network: contracts.read_schema(source / network / "schema.json") for network in networks}
        public = release.accounting == "rigorous"
        for budgets in release.settings().values():
            for network, schema in schemas.items():
                features = tuple(feature for feature in schema.features if not public or feature.bounds == "public")
                if features and new("feature", features, budgets.features_epsilon):
                    samples = worst_cases.multidimensional_samples(features, budgets.features_epsilon, n, rng())
                    mechanism = _described(features, budgets.features_epsilon, network)
                    yield record(
                        "feature", mechanism, "all features of one user replaced", budgets.features_epsilon, samples
                    )
            count = release.count_share * budgets.edges_epsilon
            if new("count", count):
                samples = worst_cases.counts_samples(count, 1, n, rng())
                mechanism = "discrete Laplace noise on the number of friendships"
                yield record("edge", mechanism, "one friendship added or removed", count, samples)
            if public and new("cell", budgets.edges_epsilon - count):
                cell = budgets.edges_epsilon - count
                samples = worst_cases.cells_samples(cell, n, rng())
                yield record(
                    "edge", "a cell of the top-m filter, rigorous", "one friendship added or removed", cell, samples
                )
            if budgets.text_epsilon is not None and not public and new("text", budgets.text_epsilon):
                samples = worst_cases.words_samples(budgets.text_epsilon, n, rng())
                mechanism = "words replaced by the distance of public vectors"
                yield record(
                    "text", mechanism, "one word replaced by one at a distance of 1", budgets.text_epsilon, samples
                )


def _described(features: tuple[Feature, ...], epsilon: float, network: str) -> str:
    return f"{sampled_features(epsilon, len(features))} of {len(features)} features of {network}, multidimensional"


def _split(read: set[str]) -> list[tuple[str, str, str]]:
    return [folder.partition("/") for folder in sorted(read)]
