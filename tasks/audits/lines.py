"""Which lines of a ledger audits are of, before anything ran: no output depends on it."""

from __future__ import annotations

from tasks.privacy.accounting.ledger import Accounting
from tasks.privacy.terms import Mechanism, Observer, Unit

DECIDES_NOTHING = True
AUDITED_LINES: dict[str, tuple[Mechanism, Observer, *tuple[Accounting | Unit, ...]]] = {
    "ae": ("personal-sgd", ""), "dipsgnn": ("aggregates-training", ""),
    "dipsgnn-authors-code": ("aggregates-training-squared", ""), "dipsgnn-cached": ("aggregates-once", ""),
    "dipsgnn-released": ("visits-gaussian", ""), "dipsgnn-rigorous": ("aggregates-per-epoch", ""),
    "dp-popularity": ("counts-discrete-laplace", ""), "dp-popularity/above-cap": ("counts-discrete-laplace", ""),
    "dp-rating-means": ("sums-laplace", ""), "dp-sasrec": ("user-dpsgd", ""), "dpae": ("user-dpsgd", ""),
    "dpae/sampled": ("user-dpsgd", ""), "dpals": ("als-gaussian", ""), "dpmf": ("objective-items", ""),
    "dpmf-explicit": ("objective-listed-cells", ""), "dpmf-implicit": ("objective-listed-cells", ""),
    "dpmf-ratings": ("shared-laplace", "recommender-of-sums"), "dpmf-rigorous": ("objective-items-public-users", ""),
    "dpne": ("objective-graph", ""), "dpsgd": ("user-dpsgd", ""), "dpvae-compact": ("user-dpsgd", ""),
    "dpvae-rigorous": ("user-dpsgd", ""), "dpvae-rigorous/norms": ("user-dpsgd", ""),
    "dpvae-rigorous/popularity": ("counts-of-biases", ""),
    "dpvae-rigorous/popularity-above-cap": ("counts-of-biases", ""), "dpvae-rigorous/quantile": ("user-dpsgd", ""),
    "edgerand": ("matrices-once", ""), "edges": ("top-m-filter", "", "rigorous"), "edges/cells": ("top-m-cell", ""),
    "edges/filled": ("top-m-filter", "", "published"), "edges/number": ("edge-count-discrete-laplace", ""),
    "edges/released": ("top-m-filter-exchanged", ""), "features": ("piecewise-unary", ""),
    "features/categories": ("optimised-unary", ""), "features/numbers": ("piecewise", ""),
    "features/released": ("piecewise-exchanged", ""), "gaussian-popularity": ("sums-gaussian", ""),
    "gram-ease": ("sums-gaussian", ""), "gram-svd": ("sums-gaussian", ""), "mf": ("personal-sgd", ""),
    "privsr": ("shared-laplace", "recommender-of-sums"),
    "privsr-rigorous": ("submissions-gaussian", "recommender-of-sums"),
    "privsr-rigorous/co-raters": ("submissions-gaussian", "co-raters"),
    "privsr-rigorous/friend": ("submissions-gaussian", "friend"),
    "privsr-rigorous/recommender": ("submissions-gaussian", "recommender-of-submissions"),
    "privsr-rigorous/submissions": ("submissions-gaussian", "recommender-of-submissions"), "svd": ("personal-sgd", ""),
    "texts": ("exponential-words", "", "rigorous", "texts"),
}  # fmt: skip
"""Name of an audit -> mechanism and observer of the ledger's lines that it is of; accounting and unit if not of any."""
