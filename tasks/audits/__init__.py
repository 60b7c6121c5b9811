"""Worst-case audits of shipped models: real `fit`s on neighbouring data, and what the model's own ledger says of them.

`tasks.privacy.audits` judges samples and audits mechanisms by themselves. What is here calls the models: an audit makes
two small data sets that differ as the ledger's neighbouring relation says, as far apart as one record can move what is
released, fits the real model on either again and again, and returns a statistic of every run. Names of audits are
`MODEL` or `MODEL/SETTING`; they are imported only when asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits.audit import Audit, audit

CONFIDENCE = 0.999
"""Of each lower bound: a sound model is refuted once in a thousand audits, or less."""

LEVELS = 16
"""Parts of the statistic."""

AUDITS: dict[str, str] = {
    "dipsgnn-cached": "tasks.audits.sessions:cached",
    "dipsgnn-released": "tasks.audits.sessions:released",
    "dipsgnn-rigorous": "tasks.audits.sessions:rigorous",
    "dp-popularity": "tasks.audits.counts:popularity",
    "dp-popularity/above-cap": "tasks.audits.counts:popularity_above_cap",
    "dpae": "tasks.audits.sgd:autoencoder",
    "dpae/sampled": "tasks.audits.sgd:autoencoder_sampled",
    "dpals": "tasks.audits.statistics:alternating",
    "dpmf-rigorous": "tasks.audits.counts:factorisation",
    "dpsgd": "tasks.audits.sgd:sessions",
    "dpvae-compact": "tasks.audits.sgd:compact",
    "dpvae-rigorous": "tasks.audits.sgd:rigorous",
    "dpvae-rigorous/quantile": "tasks.audits.sgd:rigorous_quantile",
    "edgerand": "tasks.audits.sessions:edgerand",
}
"""Name of an audit -> the function, an `Auditor`."""


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
    """The audit of this name (KeyError if there is none)."""
    module, _, attribute = AUDITS[name].partition(":")
    return cast(Auditor, getattr(import_module(module), attribute))


def judged(samples: Samples, confidence: float = CONFIDENCE) -> Audit:
    """The lower bound on ε that samples prove, at the δ of the ledger.

    To be compared with `samples.entry.accounted_epsilon`, by `tasks.privacy.audits.audit.verdict`. Runs are few, so the
    statistic is cut into `LEVELS` parts, by the first half of the samples, which also chooses the event.
    """
    half = len(samples.present) // 2
    seen = np.concatenate([samples.present[:half], samples.without[:half]])
    edges = np.unique(np.quantile(seen, np.arange(1, LEVELS) / LEVELS))
    present, without = (np.searchsorted(edges, part) for part in samples[:2])
    return audit(present, without, confidence, samples.entry.accounted_delta)
