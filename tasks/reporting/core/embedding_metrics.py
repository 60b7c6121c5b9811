"""Names of what is measured of users' embeddings, and of the guesses that need none."""

from __future__ import annotations

SCORES = {"precision": "precision", "precision-swapped": "precision, swapped", "micro-f1": "micro-F1"}
"""Our scores -> how they are headed."""
EVERYTHING, MAJORITY = "everything", "majority"


def interests(network: str, score: str = "precision") -> str:
    """The score of the prediction of interests, in METRICS."""
    return f"{network}/interests/{score}"


def inference(network: str, attribute: str, score: str = "precision") -> str:
    """The score of the attack on an attribute, in METRICS."""
    return f"{network}/{attribute}/{score}"
