"""Mechanisms of params.yaml by what they release -> what runs them; imported only when asked for."""

from __future__ import annotations

FEATURES = {
    "multidimensional": "tasks.stages.perturb_features:perturb",
}
"""The features of a table of users."""
NETWORKS = {
    "dpcrosue": "tasks.stages.perturb_networks:perturb",
}
"""Networks of users."""
