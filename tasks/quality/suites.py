"""What the tables of each contract must hold: one function per contract, giving its tables with their rules."""

from tasks.quality.alignments import aligned, alignment_metrics
from tasks.quality.embedding_releases import embedding_releases
from tasks.quality.metrics import (
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
from tasks.quality.perturbed_networks import perturbed_network
from tasks.quality.processed import processed
from tasks.quality.raw import raw
from tasks.quality.releases import next_items, perturbed, predictions, recommendations
from tasks.quality.rules import files
from tasks.quality.words import words

__all__ = [
    "aligned",
    "alignment_metrics",
    "attack_metrics",
    "embedding_attack_metrics",
    "embedding_metrics",
    "embedding_releases",
    "files",
    "measurements",
    "metrics",
    "next_item_metrics",
    "next_items",
    "perturbed",
    "perturbed_network",
    "predictions",
    "processed",
    "ranking_metrics",
    "rating_metrics",
    "raw",
    "recommendations",
    "reconstruction_metrics",
    "words",
]
