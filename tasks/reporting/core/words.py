"""How reports name attackers, scores and guesses, and what systems do; the metrics of networks by their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasks.results.paper import Paper

ATTACKERS = {
    "neural": "neural network",
    "decision_tree": "decision tree",
    "naive_bayes": "naive Bayes",
    "knn": "k nearest neighbours",
    "gaussian_process": "Gaussian process",
}
SCORES = {"precision": "precision", "precision-swapped": "precision, swapped", "micro-f1": "micro-F1"}
"""Scores of what is predicted from embeddings -> how they are headed."""
EVERYTHING, MAJORITY = "everything", "majority"
"""Guesses that need no embedding: every interest for all users, and the most frequent class."""


@dataclass(frozen=True)
class Words:
    """How a report speaks of what its systems do; the default is that of lists."""

    quality: str = "Ranking"
    """Heading of how well systems do it."""
    participles: tuple[str, str] = ("ranking better", "ranking worse")
    yardstick: str = "a noisy list of best-sellers"
    """What the private yardstick is."""
    yardsticks: str = "the popularity lists"
    direction: str = "Up is better ranking"
    verdict: str = "A private system below a popularity line serves its users worse than a list of best-sellers."
    """What to conclude from a system on the wrong side of a yardstick's line."""
    worth: str = "where it ranks above a noisy list of best-sellers of the same accounted ε"
    """When a private system is worth its noise."""
    run: str = "seed"
    """What is repeated."""
    splits: str = "other random splits of these data"
    """What differs between the splits of a suite."""


def wording(paper: Paper) -> Words:
    """How reports in a paper's tables speak."""
    own: dict[str, Any] = {**paper.words}
    return Words(**own)


def interests(network: str, score: str = "precision") -> str:
    """The score of the prediction of interests, in METRICS."""
    return f"{network}/interests/{score}"


def inference(network: str, attribute: str, score: str = "precision") -> str:
    """The score of the attack on an attribute, in METRICS."""
    return f"{network}/{attribute}/{score}"
