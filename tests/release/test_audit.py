"""Canaries share no pair, the shipped code passes, and planted mistakes do not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tasks.core.errors import PrivacyError
from tasks.privacy import noise
from tasks.release import audit, making, sums
from tasks.release.building import Wanted, build
from tasks.release.making import Budget, Release

EPSILON, DELTA, HEAD = 4.0, 1e-5, 60


def budgets() -> Callable[[], Budget]:
    seeds = iter(range(9))
    return lambda: Budget(EPSILON, DELTA, np.random.default_rng([5, next(seeds)]))


def run(head: int = HEAD) -> dict[str, audit.Bounds]:
    release = Release(np.empty(0), np.arange(head), np.empty(0), 1.0, 1.0, 5000.0)
    return audit.audit(release, partial(making.make, users=5000), budgets(), 1)


def built(users: int, epsilon: float, public: int | None = None, *, evaluate: bool = False) -> None:
    rows = csr_array((np.random.default_rng(0).random((users, 120)) < 0.1).astype(np.int8))
    build(rows, Wanted(epsilon, 1e-6, public, "svd", evaluate=evaluate, audited=True, seed=1), [])


@pytest.mark.parametrize(("length", "size", "many"), [(2, 60, 29**2), (4, 60, 13**2), (3, 300, 97**2)])
def test_two_canaries_share_one_item_at_most(length: int, size: int, many: int) -> None:
    rows = audit.canaries(length, size).astype(np.int64)
    assert rows.shape == (many, size)
    assert (rows.sum(1) == length).all()
    shared = (rows @ rows.T).toarray()
    np.fill_diagonal(shared, 0)
    assert shared.max() <= 1


@pytest.mark.parametrize(("length", "size"), [(10, 15), (10, 100), (4, 19)])
def test_too_few_items_for_canaries_are_refused(length: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"no canaries of {length} items over {size}"):
        audit.canaries(length, size)


def test_the_code_that_is_shipped_is_not_refuted() -> None:
    bounds = run()
    assert audit.exceeds(bounds) == []
    assert bounds["orthogonal"]["gaussian"] > 1.5
    assert 0 < bounds["orthogonal"]["steinke"] < bounds["orthogonal"]["f_dp"]


@pytest.mark.parametrize("head", [0, 5, 6])
def test_counts_are_audited_where_there_are_few_items_with_pairs_or_none(head: int) -> None:
    bounds = run(head)
    assert set(bounds) == ({"counts", "orthogonal"} if head == 6 else {"counts"})
    assert audit.exceeds(bounds) == []
    assert 0 < bounds["counts"]["gaussian"] < bounds["counts"]["accounted"]
    assert (bounds["counts"]["accounted"] == pytest.approx(EPSILON)) == (head == 0)


@pytest.mark.parametrize(("users", "epsilon"), [(40, 0.5), (3000, 8.0)])
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("evaluate", [True, False])
def test_what_is_audited_has_the_blocks_of_the_release(
    users: int, epsilon: float, public: bool, evaluate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, blocks = making.make, []

    def make(rows: Any, budget: Budget, **options: Any) -> Release:
        release = real(rows, budget, **options)
        blocks.append([(block.statistic, block.scale) for block in budget.blocks])
        return release

    monkeypatch.setattr(making, "make", make)
    built(users, epsilon, users if public else None, evaluate=evaluate)
    assert len(blocks) == (2 if users == 40 else 4)
    assert all(of == blocks[0] for of in blocks)
    assert [statistic for statistic, _ in blocks[0]][-1] == ("counts" if users == 40 else "pairs")


def without(release: str, share: float = 0.0) -> Callable[..., Any]:
    real = noise.add_gaussian

    def add(rng: Any, name: str, value: Any, std: float, *, sensitivity: float) -> Any:
        if name != release:
            return real(rng, name, value, std, sensitivity=sensitivity)
        return real(rng, name, value, share * std, sensitivity=sensitivity) if share else value

    return add


@pytest.mark.parametrize(
    ("add", "kind"),
    [
        *((without("pairs", share), "orthogonal") for share in (0.0, 0.5)),
        *((without("counts", share), "counts") for share in (0.0, 0.5)),
    ],
)
def test_missing_noise_is_refuted(add: Callable[..., Any], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_gaussian", add)
    assert kind in audit.exceeds(run())


def test_counts_alone_whose_second_block_has_no_noise_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    real, first = noise.add_gaussian, []

    def add(rng: Any, name: str, value: Any, std: float, *, sensitivity: float) -> Any:
        if first and first.pop() is rng:
            return value
        first.append(rng)
        return real(rng, name, value, std, sensitivity=sensitivity)

    built(40, 0.5, 40)
    monkeypatch.setattr(noise, "add_gaussian", add)
    with pytest.raises(PrivacyError, match="refutes"):
        built(40, 0.5, 40)


@pytest.mark.parametrize("power", [0.0, 0.25])
def test_wrong_weights_are_refuted_by_long_rows_alone(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, or a fourth root in place of a square root; at more items, where a fourth root shows."""

    def weights(sizes: Any, most: int) -> Any:
        return np.minimum(1.0, (most / np.maximum(sizes, 1)) ** power)

    monkeypatch.setattr(sums, "_weights", weights)
    assert audit.exceeds(run(200)) == ["counts", "heavy"]
