"""What the tables of each contract must hold: one function per contract, giving its tables with their rules."""

from tasks.quality.files import files
from tasks.quality.metrics import attack_metrics, measurements, metrics, ranking_metrics
from tasks.quality.processed import processed
from tasks.quality.raw import raw
from tasks.quality.releases import perturbed, recommendations

__all__ = [
    "attack_metrics",
    "files",
    "measurements",
    "metrics",
    "perturbed",
    "processed",
    "ranking_metrics",
    "raw",
    "recommendations",
]
