"""What a fit draws to hide something is what its ledger books: as often, and as large, release by release."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.models.ranking.dpals import norm_bound
from tasks.privacy import noise
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms.aggregation import VISIT_SENSITIVITY
from tasks.release.rule import COUNTED
from tests.models.contract import fitted, make, of_matrix, short, small, system
from tests.models.test_noise_streams import case, model_of
from tests.systems import ids

Booked = tuple[str, float, int]
"""A release, the scale of its noise, and how many arrays of it are drawn."""
DPAE = 2
"""Its weights and its biases, which it holds as buffers."""
RANGE = 4
"""Of ratings from 1 to 5."""


def steps(model: Any) -> Callable[[Event], list[Booked]]:
    """A step's sums of clipped gradients, one array for each parameter."""
    parts = len([parameter for parameter in model.network.parameters() if parameter.requires_grad]) or DPAE

    def booked(event: Event) -> list[Booked]:
        scale = event.parameters["noise_multiplier"] * model.config.clip_norm
        return [("sum-of-gradients", scale, event.count * parts)]

    return booked


def counts(_: Any) -> Callable[[Event], list[Booked]]:
    """Discrete Laplace noise, once."""
    return lambda event: [("item counts", -1 / math.expm1(-event.parameters["noise_parameter"]), event.count)]


def gaussian(release: str, sensitivity: float) -> Callable[[Event], list[Booked]]:
    """One array for each time."""
    return lambda event: [(release, event.parameters["noise_multiplier"] * sensitivity, event.count)]


def alternating(model: Any) -> list[Callable[[Event], list[Booked]]]:
    """DPALS' releases in the order of its ledger."""
    config = model.config
    bound = norm_bound(config.contribution)
    return [
        gaussian("item counts", bound),
        gaussian("right-hand-sides", bound * config.clip),
        gaussian("Gramian", config.clip**2),
    ]


LABELS = gaussian("labels", math.sqrt(2))
BOOKS: dict[str, tuple[str, Callable[[Any], list[Callable[[Event], list[Booked]]]]]] = {
    "dp-popularity": ("user", lambda model: [counts(model)]),
    "dpmf-rigorous": ("interaction", lambda model: [counts(model)]),
    "dp-rating-means": ("sensitive-rating", lambda _: [gaussian("sums-of-ratings", RANGE)]),
    "dpae": ("user", lambda model: [steps(model)]),
    "dpsgd": ("user", lambda model: [steps(model)]),
    "dpvae-compact": ("user", lambda model: [steps(model), counts(model)]),
    "dpals": ("user", alternating),
    "gram-svd": ("user", lambda _: [gaussian("counts", math.sqrt(COUNTED)), gaussian("pairs", 1)]),
    "gaussian-popularity": ("user", lambda _: [gaussian("counts", math.sqrt(COUNTED))]),
    "privsr-rigorous": ("sensitive-rating", lambda _: [gaussian("submissions", 2 * RANGE)]),
    "dipsgnn-released": ("visit", lambda model: [gaussian("visits", model.distance), LABELS]),
}
"""System -> what its neighbours differ in, and what its events, in their order, mean in draws: these are so large by
how far such neighbours move what is released."""


def recorded(name: str) -> tuple[Any, list[noise.Draw]]:
    """A fitted model, and what it drew to hide something."""
    model = model_of(name)
    with noise.recording() as draws:
        model.fit(case(name)[1], rng=np.random.default_rng(0))
    return model, draws


@pytest.mark.parametrize("name", BOOKS)
def test_draws_are_those_that_the_ledger_books(name: str) -> None:
    model, draws = recorded(name)
    entry = next(entry for entry in model.ledger() if entry.accounted_epsilon is not None)
    expected: Counter[tuple[str, float]] = Counter()
    unit, books = BOOKS[name]
    assert entry.unit == unit
    budget = model.config.epsilon_max if name.startswith("dpvae") else model.config.epsilon
    assert entry.claimed_epsilon == budget
    assert 0.99 * budget < entry.accounted_epsilon <= budget * (1 + 1e-9)
    assert entry.accounted_delta == entry.claimed_delta
    for event, means in zip(entry.events, books(model), strict=True):
        for release, scale, number in means(event):
            expected[release, round(scale, 6)] += number
    drawn = Counter((draw.release, round(draw.scale, 6)) for draw in draws if draw.law != "uniform")
    assert {key for key, number in drawn.items() if number} == {key for key in expected if expected[key]}, drawn
    assert drawn == expected


def test_an_adaptive_bound_books_gradients_and_counts_together() -> None:
    """Two releases in every step share its multiplier: z⁻² = z₁⁻² + z₂⁻²."""
    model, draws = recorded("dpvae-rigorous")
    (entry,) = [entry for entry in model.ledger() if entry.protects == "interaction"]
    (event,) = entry.events
    small = [draw.scale for draw in draws if draw.release == "count-of-small-norms"]
    assert len(small) == event.count
    assert len([draw for draw in draws if draw.release == "who-is-in-the-step"]) == event.count
    assert 0.5 / small[0] < 1 / event.parameters["noise_multiplier"]


@pytest.mark.parametrize("name", ["dipsgnn-rigorous", "dipsgnn-cached"])
def test_aggregates_have_the_noise_of_all_their_releases(name: str) -> None:
    model, draws = recorded(name)
    (entry,) = [entry for entry in model.ledger() if entry.protects == "session graph"]
    (event,) = entry.events
    scales = {round(draw.scale, 6) for draw in draws}
    clip = model.config.clip
    assert scales == {round(event.parameters["noise_multiplier"] * VISIT_SENSITIVITY * clip, 6)}


UNBOUNDED: dict[str, dict[str, Any]] = {
    "dpae": {"epsilon": math.inf, "clip_norm": math.inf},
    "dpals": {"epsilon": math.inf, "clip": math.inf, "contribution": math.inf, "lengthen": False},
    "dpsgd": {"epsilon": math.inf, "clip_norm": math.inf},
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_no_epsilon_is_finite_of_an_infinite_budget_which_survives_saving_or_before_training(
    name: str, tmp_path: Path
) -> None:
    model = fitted(name, small(name), **short(name) | UNBOUNDED[name])
    (entry,) = model.ledger()
    assert (entry.claimed_epsilon, entry.accounted_epsilon) == (None, None)
    model.save(tmp_path / "model.safetensors")
    assert system(name).load(tmp_path / "model.safetensors").config == model.config
    (entry,) = make(name).ledger()
    assert entry.accounted_epsilon is None
    assert "not-accounted" in ids(entry.reasons)


@pytest.mark.parametrize("name", [*UNBOUNDED, "dpvae-rigorous"])
@pytest.mark.parametrize(("delta", "named"), [(1e-3, False), (0.1, True)])
def test_a_delta_that_means_little_is_named(name: str, delta: float, named: bool) -> None:
    (entry,) = fitted(name, small(name), **short(name) | {"delta": delta}).ledger()
    assert ("large-delta" in ids(entry.gaps)) == named


@pytest.mark.parametrize("contribution", [1, 7])
def test_a_user_with_every_item_counts_for_the_contribution_alone(contribution: int) -> None:
    """Noise of so large a budget is 0."""
    data = of_matrix(np.outer([0, 1, 0], np.ones(40)))
    counts = fitted("dp-popularity", data, epsilon=1e6, contribution=contribution).released()["counts"]
    assert counts.sum() == contribution
    assert counts.max() == 1
