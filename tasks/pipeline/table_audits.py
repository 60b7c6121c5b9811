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
    read = [experiment.features for experiment in suite.experiments.values()]
    read += [f"aligned/{key}" for key in suite.aligned]
    return sorted({release for features in read for release in releases_behind(features, params)})


def releases_behind(features: str, params: Params) -> list[str]:
    """The entries of `perturbed` behind a layer that is read."""
    layers = (layer.split("/") for layer in layers_behind(features, params))
    return [name for layer, name in layers if layer == "perturbed"]


def layers_behind(features: str, params: Params) -> list[str]:
    """A layer that is read, what it was made from, and so on."""
    layer, _, name = features.partition("/")
    if layer == "aligned":
        return [features, *layers_behind(params.aligned[name].of, params)]
    if layer == "embeddings":
        return [features, *layers_behind(params.embeddings[name].networks, params)]
    return [features]
