"""Canaries share no pair, the shipped code passes, and planted mistakes do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tasks.privacy import noise
from tasks.release import audit, sums
from tasks.release.making import Budget

EPSILON, DELTA, HEAD = 4.0, 1e-5, 60


def budgets() -> Callable[[], Budget]:
    seeds = iter(range(9))
    return lambda: Budget(EPSILON, DELTA, np.random.default_rng([5, next(seeds)]))


def run() -> dict[str, audit.Bounds]:
    return audit.audit(HEAD, 5000, budgets(), 1)


@pytest.mark.parametrize(("length", "size", "many"), [(2, 60, 29**2), (4, 60, 13**2), (3, 300, 97**2), (1, 60, 60)])
def test_two_canaries_share_one_item_at_most(length: int, size: int, many: int) -> None:
    rows = audit.canaries(length, size).astype(np.int64)
    assert rows.shape == (many, size)
    assert (rows.sum(1) == length).all()
    shared = (rows @ rows.T).toarray()
    np.fill_diagonal(shared, 0)
    assert shared.max() <= 1


def test_the_code_that_is_shipped_is_not_refuted() -> None:
    bounds = run()
    assert audit.exceeds(bounds, EPSILON) == []
    assert bounds["orthogonal"]["gaussian"] > 1.5
    assert 0 < bounds["orthogonal"]["steinke"] < bounds["orthogonal"]["f_dp"]


def without(release: str, share: float = 0.0) -> Callable[..., Any]:
    real = noise.add_gaussian

    def add(rng: Any, name: str, value: Any, std: float, *, sensitivity: float) -> Any:
        if name != release:
            return real(rng, name, value, std, sensitivity=sensitivity)
        return real(rng, name, value, share * std, sensitivity=sensitivity) if share else value

    return add


@pytest.mark.parametrize(
    ("add", "kind"),
    [(without("pairs"), "orthogonal"), (without("pairs", 0.5), "orthogonal"), (without("counts"), "counts")],
)
def test_missing_noise_is_refuted(add: Callable[..., Any], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_gaussian", add)
    assert kind in audit.exceeds(run(), EPSILON)


@pytest.mark.parametrize("power", [0.0, 0.25])
def test_wrong_weights_are_refuted_by_heavy_canaries_alone(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, or a fourth root in place of a square root; at more items, where a fourth root shows."""

    def weights(sizes: Any, most: int) -> Any:
        return np.minimum(1.0, (most / np.maximum(sizes, 1)) ** power)

    monkeypatch.setattr(sums, "_weights", weights)
    refuted = audit.exceeds(audit.audit(200, 5000, budgets(), 1), EPSILON)
    assert refuted == ["heavy"]
