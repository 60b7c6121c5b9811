"""Which audits a suite may need, and what perturbed data it reads, from the parameters alone."""

from __future__ import annotations

from tasks.audits import of_model
from tasks.config.params import Params
from tasks.config.tasks import TASKS

OF_FEATURES = ("features", "features/categories", "features/numbers")
OF_NETWORKS = (
    *("edges", "edges/cells", "edges/filled", "edges/number", "edges/released"),
    *("features", "features/released", "texts"),
)


def names(name: str, params: Params) -> list[str]:
    """Names of the audits that a suite may need; nothing but the parameters is read."""
    suite = params.suites[name]
    audits = {
        audit
        for experiment in suite.experiments.values()
        for config in experiment.settings().values()
        for audit in of_model(experiment.model, config)
    }
    if TASKS[suite.task].networks and releases(name, params):
        audits |= set(OF_NETWORKS)
    elif any(experiment.features.startswith("perturbed/") for experiment in suite.experiments.values()):
        audits |= set(OF_FEATURES)
    return sorted(audits)


def releases(name: str, params: Params) -> list[str]:
    """Entries of `perturbed` that experiments and alignments of a suite read, by themselves or through embeddings."""
    suite = params.suites[name]
    read = {
        release for experiment in suite.experiments.values() for release in releases_behind(experiment.features, params)
    }
    aligned = [key for key, pair in params.aligned.items() if pair.suite == name]
    return sorted(read | {release for key in aligned for release in releases_behind(f"aligned/{key}", params)})


def releases_behind(features: str, params: Params) -> set[str]:
    """The entries of `perturbed` behind a layer that is read."""
    layer, _, name = features.partition("/")
    if layer == "perturbed":
        return {name}
    if layer == "embeddings":
        return releases_behind(params.embeddings[name].networks, params)
    if layer == "aligned":
        return releases_behind(params.aligned[name].of, params)
    return set()
