"""Ids of all terms of ledgers and audits. What they mean in English stands in terms.yaml of the pages alone.

Which unit bounds which is in `tasks.privacy.units`.
"""

from __future__ import annotations

from typing import Literal

DECIDES_NOTHING = True

Protected = Literal["feature", "interaction", "edge", "session graph", "rating", "text", "label", "anchor"]
"""Kinds of private data; `anchor`: who of one network is whom in another; `session graph`: the edges between the visits
of a session as its noisy aggregates or matrices show them, which are not what is released."""
Unit = Literal[
    "any", "user", "user-with-metadata", "features", "features-within-bounds", "features-within-categories",
    "features-within-both", "private-attribute", "interaction", "training-triple", "visit", "visit-of-known-items",
    "visit-given-states", "matrix-entry", "listed-cell", "rating-value", "sensitive-rating", "edge", "texts", "word",
    "near-word", "number", "category",
]  # fmt: skip
"""What neighbouring inputs differ in."""
Level = Literal["user", "interaction", "feature", "edge", "text"]
"""Kinds of units: only budgets of one level are compared."""
Neighbouring = Literal["add-or-remove", "replace", "zero-out"]
"""How: `NeighboringRelation` of dp_accounting has the same as ADD_OR_REMOVE_ONE, REPLACE_ONE and REPLACE_SPECIAL, where
a record is replaced by an empty one that keeps its place."""
Mechanism = Literal[
    "none", "left-out", "no-aggregation", "sensitive-unused", "sensitive-local", "within-gradients",
    "blurme", "adversarial-training", "functional", "objective-items", "objective-items-public-users",
    "objective-listed-cells", "objective-graph", "counts-discrete-laplace", "als-gaussian", "user-dpsgd",
    "personal-sgd", "prior-gaussian", "aggregates-training", "aggregates-training-squared", "aggregates-per-epoch",
    "aggregates-once", "matrices-once", "noiseless-lists", "visits-gaussian", "shared-laplace", "submissions-gaussian",
    "sums-laplace", "piecewise-unary", "piecewise-exchanged", "top-m-filter", "top-m-filter-exchanged",
    "exponential-words", "exponential-some-words", "piecewise", "optimised-unary", "top-m-cell",
    "edge-count-discrete-laplace", "counts-of-biases", "sums-gaussian",
]  # fmt: skip
Observer = Literal["", "recommender-of-submissions", "recommender-of-sums", "co-raters", "friend"]
"""Who is held off; empty for anyone who sees what is released."""
Condition = Literal[
    "configuration", "epoch", "states", "bounds", "categories", "vocabulary", "visit-counts", "no-repeats",
    "preparation", "catalogue", "minimum-counts", "parts",
]  # fmt: skip
"""What was chosen on private data, or holds of them, and a guarantee takes as fixed."""
Gap = Literal[
    "added-up", "attacker-of-another-kind", "audited-as-visit", "audited-within-bounds", "averaged-noise",
    "budget-levels", "budgets-public", "catalogue-public", "lists-public", "cells-listed-implicit",
    "cells-listed-ratings",
    "claim-for-one-aggregation", "claim-for-one-entry", "claim-for-one-iteration", "claim-for-one-step",
    "classifier-fitted", "coins-float", "configuration", "counts-and-hashes", "count-costs",
    "degrees-change", "direction-dropped", "dropout-seed", "edge-not-user", "epoch", "exact-users",
    "extra-interactions", "features-apart", "features-recomputed", "fitted-categories", "fitted-ranges",
    "follows-apart", "follows-count-costs", "friend-draws", "group-privacy", "groups-public", "item-vectors-exact",
    "labels-in-vectors", "large-delta", "lists-read-history", "losses", "metrics", "most-raters", "n-nodes-public",
    "n-users-items-public", "noise-float", "norms-float", "one-sequence", "other-attributes", "other-parameters",
    "own-file", "own-list", "own-list-counts", "own-list-items", "own-predictions", "own-predictions-means",
    "own-recommendations", "place-kept", "prefixes-exact", "public-words", "raters-public", "rounded",
    "secure", "seed", "seed-of-release", "sensitivity-three-entries", "shares-known", "side-by-side", "snapped",
    "some-users-unknown", "single-submission", "submissions-added-up", "sums-float", "covers-aggregates",
    "covers-initial", "covers-matrices", "text-counts", "triples-aggregated", "two-networks", "uniform-budgets",
    "untrusted-recommender", "visits-public", "who-rated-shown", "words-float",
]  # fmt: skip
"""What is known to lie between a guarantee and the run."""
Reason = Literal[
    "not-accounted", "infinite-budget",
    "true-data", "true-features", "true-attributes", "true-embedding", "true-anchors", "labels-read",
    "heuristic", "adversary-alone", "loss-alone", "users-from-svd", "users-and-cells", "users-and-graph",
    "clip-from-gradients", "means-of-metadata", "nothing-aggregated", "lists-of-prefixes", "lists-of-true-graph",
    "recommendations-of-true-graph", "repeated-items", "aggregates-alone", "matrices-alone", "states-learnt",
    "claim-at-drawn-noise", "weights-and-lists", "whole-sequence", "user-vectors-in-messages", "nothing-sensitive",
    "published-means", "fitted-bounds", "fitted-categories", "hash-passes", "gender-passes", "exchanged-pieces",
    "filled-up", "exchanged-threshold", "words-pass", "fitted-vectors", "unscaled-numbers", "unlisted-categories",
    "whole-texts", "posts-without-budget",
]  # fmt: skip
"""Why no finite ε follows, or a remark on the accounting."""
Unaudited = Literal[
    "nothing-depends", "no-bound-and-no-case", "one-step-alone", "other-length", "other-words", "lists-exact",
    "equal-budgets", "with-interactions", "sees-more",
]  # fmt: skip
"""Why a private line has no audit."""
