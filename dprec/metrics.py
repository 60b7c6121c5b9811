"""Metrics: rankings, errors, detection at low false-positive rates, and tests that compare systems."""

from tasks.evaluation.detection import Rate, Scored
from tasks.evaluation.metrics import catalogue_metrics, micro_f1, ranking_metrics, sampled_metrics
from tasks.evaluation.ranking import Seen, tie_order, top_k
from tasks.evaluation.statistics import PairedTest, bootstrap_interval, clopper_pearson, paired_tests

__all__ = [
    "PairedTest",
    "Rate",
    "Scored",
    "Seen",
    "bootstrap_interval",
    "catalogue_metrics",
    "clopper_pearson",
    "micro_f1",
    "paired_tests",
    "ranking_metrics",
    "sampled_metrics",
    "tie_order",
    "top_k",
]
