"""Worst-case audits of shipped models: real `fit`s on neighbouring data, and what the model's own ledger says of them.

`tasks.privacy.audits` judges samples and audits mechanisms by themselves. What is here calls the models: an audit makes
two small data sets that differ as the ledger's neighbouring relation says, as far apart as one record can move what is
released, fits the real model on either again and again, and returns a statistic of every run. Names of audits are
`MODEL` or `MODEL/SETTING`; they are imported only when asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tasks.core.device import hold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tasks.privacy.accounting.ledger import LedgerEntry

AUDITS: dict[str, str] = {
    "ae": "tasks.audits.sgd:published_autoencoder",
    "dipsgnn": "tasks.audits.claims:aggregates",
    "dipsgnn-authors-code": "tasks.audits.claims:aggregates_as_released",
    "dipsgnn-cached": "tasks.audits.sessions:cached",
    "dipsgnn-released": "tasks.audits.sessions:released",
    "dipsgnn-rigorous": "tasks.audits.sessions:rigorous",
    "dp-popularity": "tasks.audits.counts:popularity",
    "dp-popularity/above-cap": "tasks.audits.counts:popularity_above_cap",
    "dp-rating-means": "tasks.audits.social:means",
    "dp-sasrec": "tasks.audits.sgd:attention",
    "dpae": "tasks.audits.sgd:autoencoder",
    "dpae/sampled": "tasks.audits.sgd:autoencoder_sampled",
    "dpals": "tasks.audits.sums:dpals",
    "dpmf": "tasks.audits.claims:factorisation",
    "dpmf-explicit": "tasks.audits.claims:explicit",
    "dpmf-implicit": "tasks.audits.claims:implicit",
    "dpmf-ratings": "tasks.audits.social:factorisation",
    "dpmf-rigorous": "tasks.audits.counts:factorisation",
    "dpne": "tasks.audits.claims:embedding",
    "dpsgd": "tasks.audits.sgd:sessions",
    "dpvae-compact": "tasks.audits.sgd:compact",
    "dpvae-rigorous": "tasks.audits.sgd:rigorous",
    "dpvae-rigorous/norms": "tasks.audits.user_counts:norms",
    "dpvae-rigorous/popularity": "tasks.audits.user_counts:popularity",
    "dpvae-rigorous/popularity-above-cap": "tasks.audits.user_counts:popularity_above_cap",
    "dpvae-rigorous/quantile": "tasks.audits.sgd:rigorous_quantile",
    "edgerand": "tasks.audits.sessions:edgerand",
    "edges": "tasks.audits.releases:friendships",
    "edges/cells": "tasks.audits.releases:cells",
    "edges/filled": "tasks.audits.claims:filled",
    "edges/number": "tasks.audits.releases:number",
    "edges/released": "tasks.audits.claims:released_follows",
    "features": "tasks.audits.releases:features",
    "features/categories": "tasks.audits.releases:categories",
    "features/numbers": "tasks.audits.releases:numbers",
    "features/released": "tasks.audits.claims:released_attributes",
    "gaussian-popularity": "tasks.audits.sums:popularity",
    "gram-ease": "tasks.audits.sums:ease",
    "gram-svd": "tasks.audits.sums:svd",
    "mf": "tasks.audits.sgd:published_factors",
    "privsr": "tasks.audits.social:published",
    "privsr-rigorous": "tasks.audits.social:sums",
    "privsr-rigorous/co-raters": "tasks.audits.social:co_raters",
    "privsr-rigorous/friend": "tasks.audits.social:friend",
    "privsr-rigorous/recommender": "tasks.audits.social:recommender",
    "privsr-rigorous/submissions": "tasks.audits.social:submissions",
    "svd": "tasks.audits.sgd:published_factors_and_biases",
    "texts": "tasks.audits.releases:texts",
}
"""Name of an audit -> the function, an `Auditor`."""
CLAIMS = (
    "dipsgnn", "dipsgnn-authors-code", "dpmf", "dpmf-explicit", "dpmf-implicit", "dpmf-ratings", "dpne", "edges/filled",
    "edges/released", "features/released", "privsr",
)  # fmt: skip
"""Audits of published claims for which no finite ε follows: that one is refuted is a finding, not a fault."""
OF_CODE = ("dp-popularity/above-cap",)
"""Audits that have a configuration of their own whatever an experiment has: they are of the code and of no line."""
_RIGOROUS: dict[str, object] = {"model": "privsr", "accounting": "rigorous"}
_EQUAL: dict[str, object] = {
    "privacy": "dpsgd", "accounting": (None, "published"), "budgets": (None, "equal"),
    "calibration": (None, "step"), "neighbours": (None, "user"), "examples": (None, 1),
}  # fmt: skip
AUDITED_SETTINGS: dict[str, dict[str, object]] = {
    "ae": {"model": "ae"} | _EQUAL, "mf": {"model": "mf"} | _EQUAL, "svd": {"model": "svd"} | _EQUAL,
    "dipsgnn": {"model": ("dipsgnn", "priv-u"), "accounting": "published", "steps": 1},
    "dipsgnn-authors-code": {"model": ("dipsgnn", "priv-u"), "accounting": "released", "steps": 1},
    "dipsgnn-cached": {"model": ("dipsgnn", "priv-u"), "accounting": "cached"},
    "dipsgnn-rigorous": {"model": ("dipsgnn", "priv-u"), "accounting": "rigorous"},
    "dpmf": {"model": "dpmf", "accounting": "published"},
    "dpmf-rigorous": {"model": "dpmf", "accounting": "rigorous"},
    "dpvae-compact": {"model": "vae", "accounting": "rigorous", "frozen_encoder": True},
    "dpvae-rigorous": {"model": "vae", "accounting": "rigorous", "frozen_encoder": (None, False), "quantile": None},
    "dpvae-rigorous/norms": {"model": "vae", "accounting": "rigorous", "quantile": ...},
    "dpvae-rigorous/popularity": {"model": "vae", "accounting": "rigorous", "popularity": ...},
    "dpvae-rigorous/popularity-above-cap": {"model": "vae", "accounting": "rigorous", "popularity": ...},
    "dpvae-rigorous/quantile": {"model": "vae", "accounting": "rigorous", "quantile": ...},
    "gram-ease": {"model": ("gram-ease", "gram-ease-raw")},
    "edges": {}, "edges/cells": {}, "edges/filled": {}, "edges/number": {}, "edges/released": {}, "texts": {},
    "features": {}, "features/categories": {}, "features/numbers": {}, "features/released": {},
    "privsr": {"model": "privsr", "accounting": "published"},
    "privsr-rigorous": _RIGOROUS, "privsr-rigorous/co-raters": _RIGOROUS, "privsr-rigorous/friend": _RIGOROUS,
    "privsr-rigorous/recommender": _RIGOROUS | {"towards": "recommender"},
    "privsr-rigorous/submissions": _RIGOROUS | {"towards": "sums"},
}  # fmt: skip
"""Name of an audit -> the model and the keys of its configuration that it is of: a value, several, or `...` for any but
none. What is not here is of the model whose name it has; what is empty is of perturbed data."""
_OBSERVED = ("delta", "towards", "colluders")
_STEPS = ("delta", "batch_size", "epochs", "private_epochs")
COPIED_KEYS: dict[str, tuple[str, ...]] = {
    "ae": _STEPS, "mf": _STEPS, "svd": _STEPS,
    "dipsgnn": ("delta",), "dipsgnn-cached": ("delta",), "dipsgnn-released": ("delta",),
    "dipsgnn-rigorous": ("delta",), "edgerand": ("delta",),
    "dipsgnn-authors-code": ("delta", "clip"),
    "dp-popularity": ("contribution",),
    "dpae": ("delta",), "dpae/sampled": ("delta",), "dpsgd": ("delta",), "dp-sasrec": ("delta",),
    "dpals": ("delta", "iterations", "counts_share", "gramian_share", "local_share", "unobserved_weight"),
    "gaussian-popularity": ("delta",), "gram-ease": ("delta",), "gram-svd": ("delta",),
    "dpmf-explicit": ("alternations",), "dpmf-implicit": ("alternations",),
    "dpmf-ratings": ("epochs", "iterations_per_epoch", "dimension"),
    "dpvae-compact": ("delta", "prior"), "dpvae-rigorous": ("delta", "prior"),
    "dpvae-rigorous/norms": ("delta",), "dpvae-rigorous/quantile": ("delta", "prior"),
    "dpvae-rigorous/popularity": ("popularity", "contribution"),
    "dpvae-rigorous/popularity-above-cap": ("popularity", "contribution"),
    "privsr": ("beta", "epochs", "iterations_per_epoch", "dimension"),
    "privsr-rigorous": _OBSERVED, "privsr-rigorous/co-raters": _OBSERVED, "privsr-rigorous/friend": _OBSERVED,
    "privsr-rigorous/submissions": _OBSERVED,
    "privsr-rigorous/recommender": ("delta",),
}  # fmt: skip
"""Name of an audit -> keys of a model's configuration that it is given besides the budget: a guarantee for another δ
has other noise."""


class Samples(NamedTuple):
    """What an auditor saw of many runs on either of two neighbouring data sets."""

    without: NDArray[np.float64]
    """(n,) statistic of what was released, the record taken out; one number for each run."""
    present: NDArray[np.float64]
    """(n,) the same statistic, the record there."""
    entry: LedgerEntry
    """What the model's own ledger says of such a run: the ε, at its δ, that the samples are held against."""


class Auditor(Protocol):
    """An audit: a function at the top of a module of `tasks.audits`."""

    def __call__(self, seed: int, n_samples: int = ..., epsilon: float = ...) -> Samples:
        """Run the real model `n_samples` times on either data set.

        Args:
            seed: of everything that is drawn; the same seed gives the same samples.
            n_samples: runs on either data set; the default takes less than half a minute on one core.
            epsilon: the budget that the model is configured with.
        """
        ...


def auditor(name: str) -> Auditor:
    """The audit of this name (KeyError if there is none), on the CPU: its records are of a few numbers."""
    import torch

    module, _, attribute = AUDITS[name].partition(":")
    return cast(Auditor, hold(torch.device("cpu"))(getattr(import_module(module), attribute)))


def of_model(model: str, config: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """The audits of a model as it is configured: name -> keyword arguments of the auditor; none without a budget."""
    budget = config.get("epsilon", config.get("epsilon_max"))
    if budget is None or math.isinf(budget):
        return {}
    audits = {}
    for name in AUDITS:
        conditions = AUDITED_SETTINGS.get(name, {"model": name.partition("/")[0]})
        values = {"model": model, **config}
        if conditions and all(meets(values.get(key), wanted) for key, wanted in conditions.items()):
            taken = {key: config[key] for key in COPIED_KEYS.get(name, ()) if key in config}
            audits[name] = {"epsilon": float(budget)} | taken
    return audits


def meets(value: object, wanted: object) -> bool:
    """Whether a key of a configuration has what `AUDITED_SETTINGS` says."""
    if wanted is ...:
        return value is not None
    return value in wanted if isinstance(wanted, tuple) else bool(value == wanted)
