"""What the tables of each contract must hold: one function per contract, giving its tables with their rules."""

from tasks.quality.metrics import (
    alignment_metrics,
    alignment_tables,
    attack_metrics,
    embedding_attack_metrics,
    embedding_metrics,
    measurements,
    metrics,
    next_item_metrics,
    ranking_metrics,
    rating_metrics,
    reconstruction_metrics,
)
from tasks.quality.perturbed import perturbed_features, perturbed_network, perturbed_tables, released_features
from tasks.quality.processed import processed_tables
from tasks.quality.raw import raw_tables
from tasks.quality.releases import embedding_releases, next_items, predictions, recommendations, words
from tasks.quality.rules import files

__all__ = [
    "alignment_metrics",
    "alignment_tables",
    "attack_metrics",
    "embedding_attack_metrics",
    "embedding_metrics",
    "embedding_releases",
    "files",
    "measurements",
    "metrics",
    "next_item_metrics",
    "next_items",
    "perturbed_features",
    "perturbed_network",
    "perturbed_tables",
    "predictions",
    "processed_tables",
    "ranking_metrics",
    "rating_metrics",
    "raw_tables",
    "recommendations",
    "reconstruction_metrics",
    "released_features",
    "words",
]
