"""No two fits share noise, whatever tells them apart: seed, budget, experiment, setting or data.

Two releases with the same noise would show their difference without any. False alarms: a correlation above 6 standard
errors, twice in a billion.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from tasks.config.params import Experiment
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.base import ModelConfig
from tasks.models.ranking.popularity import PrivatePopularity, PrivatePopularityConfig
from tasks.privacy import noise
from tasks.privacy.noise import Draw
from tests.models.contract import LISTS, RATINGS, SEQUENCES, checkerboard, grammar, short, system
from tests.models.social_data import ratings

USERS, ITEMS = np.array([0, 0, 1, 2], np.int32), np.array([1, 2, 2, 0], np.int32)
Case = tuple[dict[str, object], TrainingData, TrainingData]
PRIVATE = [
    *("dp-popularity", "dpmf", "dpmf-rigorous", "dpne", "gerai", "dpae", "dpals", "dpmf-implicit", "dpmf-explicit"),
    *("gram-svd", "gram-ease", "gram-ease-raw", "gaussian-popularity"),
    *("dpvae", "dpvae-rigorous", "dpvae-compact"),
    *("dipsgnn", "dipsgnn-authors-code", "dipsgnn-rigorous", "dipsgnn-cached", "dipsgnn-released"),
    *("priv-u", "edgerand", "dpsgd", "dp-sasrec"),
    *("dp-rating-means", "dpmf-ratings", "privsr", "privsr-rigorous"),
]


def case(name: str) -> Case:
    """A configuration that is fitted in a second, and two data sets."""
    if name in LISTS:
        tight = {"epsilon": 1.0} if name == "dpmf-rigorous" else {}  # noise on counts is else nearly always 0
        return LISTS[name] | short(name) | tight, checkerboard()[0], checkerboard(seed=1)[0]
    if name in SEQUENCES:
        once = {"epochs": 1} if "epochs" in SEQUENCES[name] else {}
        return SEQUENCES[name] | once, grammar(), grammar(seed=1)
    data = ratings(0.3)
    return RATINGS[name], data, replace(data, ratings=data.ratings[::-1].copy())


def model_of(name: str, config: dict[str, object] | None = None) -> Any:
    cls = system(name)
    return cls(cls.Config.model_validate(case(name)[0] if config is None else config))


def draws(
    name: str, config: dict[str, object], data: TrainingData, named: tuple[str, ...] = (), seed: int = 0
) -> list[Draw]:
    """Everything that a fit draws to hide something."""
    model = model_of(name, config)
    model.named = named
    with noise.recording() as drawn:
        model.fit(data, rng=np.random.default_rng(seed))
    return drawn


def shared(first: list[Draw], other: list[Draw]) -> bool:
    """Whether what two fits drew for the same release, in the same order, is correlated."""
    total, n = 0.0, 0
    for release in {draw.release for draw in first}:
        pair = [[np.ravel(draw.values) for draw in of if draw.release == release] for of in (first, other)]
        left, right = (np.concatenate(values).astype(float) if values else np.empty(0) for values in pair)
        size = min(len(left), len(right))
        if size > 1 and left[:size].std() and right[:size].std():
            total += size * np.corrcoef(left[:size], right[:size])[0, 1]
            n += size
    assert n > 8
    return abs(total / n) > min(6 / n**0.5, 0.99)


def budgeted(config: dict[str, object]) -> dict[str, object]:
    """The same with another budget."""
    key = next(key for key in ("epsilon", "epsilon_max") if config.get(key) is not None)
    return config | {key: config[key] * 1.25}  # type: ignore[operator]


@pytest.mark.parametrize("name", PRIVATE)
def test_noise_is_shared_with_no_other_fit(name: str) -> None:
    config, data, other = case(name)
    base = draws(name, config, data, ("ml-100k", "x", "base"))
    others: dict[str, Callable[[], list[Draw]]] = {
        "seed": lambda: draws(name, config, data, ("ml-100k", "x", "base"), seed=1),
        "budget": lambda: draws(name, budgeted(config), data, ("ml-100k", "x", "base")),
        "experiment": lambda: draws(name, config, data, ("ml-100k", "y", "base")),
        "setting": lambda: draws(name, config, data, ("ml-100k", "x", "epsilon=2")),
        "data set": lambda: draws(name, config, data, ("ml-1m", "x", "base")),
        "data": lambda: draws(name, config, other, ("ml-100k", "x", "base")),
    }
    assert shared(base, draws(name, config, data, ("ml-100k", "x", "base")))
    assert [what for what, of in others.items() if shared(base, of())] == []


def test_noise_leaves_the_start_of_the_weights_as_it_is() -> None:
    """So that budgets are compared from the same weights, which hide nothing."""
    rng = np.random.default_rng(0)
    noise.stream(rng, "a")
    assert rng.random() == np.random.default_rng(0).random()


def test_two_fits_with_one_generator_have_noise_of_their_own() -> None:
    data, rng = case("dp-popularity")[1], np.random.default_rng(0)
    first, second = (model_of("dp-popularity").fit(data, rng=rng).released()["counts"] for _ in range(2))
    assert bool((first != second).any())


class Renamed(ModelConfig):
    """`PrivatePopularityConfig` with another name of a field."""

    budget: float = Field(serialization_alias="epsilon")
    contribution: int = 20


def test_names_of_classes_fields_and_settings_are_not_in_the_key_of_noise() -> None:
    data, drawn = checkerboard()[0], []
    for cls, config, key in (
        (PrivatePopularity, PrivatePopularityConfig(epsilon=2.0, contribution=20), "epsilon"),
        (type("T", (PrivatePopularity,), {}), Renamed(budget=2.0), "budget"),
    ):
        model = cls(config)
        experiment = Experiment.model_construct(model="", config={}, sweep=[{key: 2.0}])
        model.named = ("data", "experiment", [*experiment.settings(config.noise_names())][1])
        drawn.append(model.noise_stream(data, np.random.default_rng(0)).random())
    assert drawn[0] == drawn[1]
    model.noise_key = ""
    with pytest.raises(ConfigurationError, match="has no noise_key"):
        model.noise_stream(data, np.random.default_rng(0))


def test_a_repeated_interaction_is_refused_and_sequences_count_repeated_items() -> None:
    """Neighbours that differed in a repeat had one digest, so one noise."""
    users, items = USERS[[0, 1, 1, 2, 3, 3]], ITEMS[[0, 1, 1, 2, 3, 3]]
    with pytest.raises(DataError, match=r"2 repeated interactions, the first of user 0, item 2"):
        TrainingData(3, 3, users, items)
    once, twice = Sequences.from_events(USERS, ITEMS), Sequences.from_events(users, items)
    data = TrainingData(3, 3, USERS, ITEMS, sequences=once)
    assert data.digest != replace(data, sequences=twice).digest


def test_the_digest_stays_whatever_the_order() -> None:
    """Committed results have noise of this key."""
    order, ratings = [2, 0, 3, 1], np.arange(4, dtype=np.float32)
    data, other = TrainingData(3, 4, USERS, ITEMS), TrainingData(3, 4, USERS[order], ITEMS[order])
    assert data.digest == other.digest == "7a9926d974ceb0944b5bd1129eff525d0e82397f55f8985e9d9606bf44da620d"
    rated = replace(data, ratings=ratings)
    assert replace(other, ratings=ratings[order]).digest == rated.digest != data.digest
