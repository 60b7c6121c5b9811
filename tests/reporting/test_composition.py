"""What all releases of a suite spend together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.reporting.core.results import Results, Spent
from tasks.reporting.sections import composition


def entry(epsilon: float, protects: str = "interaction") -> LedgerEntry:
    event = Event(kind="discrete-laplace", parameters={"noise_parameter": epsilon, "sensitivity": 1.0})
    return LedgerEntry.model_validate(
        {
            "protects": protects,
            "neighbouring": "one user",
            "mechanism": "counts",
            "accounting": "rigorous",
            "claimed_epsilon": epsilon,
            "claimed_delta": 0.0,
            "accounted_epsilon": account((event,)).epsilon,
            "accounted_delta": 0.0,
            "events": (event,),
        }
    )


def spending(results: Results, *spent: tuple[Spent, ...], own_noise: bool = True) -> Results:
    systems = tuple(replace(system, spent=of) for system, of in zip(results.systems, spent, strict=False))
    return replace(results, systems=systems, own_noise=own_noise)


def perturbed(results: Results, name: str = "features") -> Results:
    """All systems read the same perturbed data."""
    reading = {"features": f"perturbed/{name}"}
    return replace(results, systems=tuple(replace(system, parameters=reading) for system in results.systems))


def test_settings_and_seeds_of_all_systems_add_up(real: Results) -> None:
    first = (Spent("base", 0, entry(1.0)), Spent("base", 1, entry(1.0)), Spent("epsilon=2", 0, entry(2.0)))
    (group,) = composition.together(spending(real, first, (Spent("base", 0, entry(0.5)),)))
    assert (group.releases, group.largest, group.epsilon) == (4, 2.0, pytest.approx(4.5))


def test_data_that_were_perturbed_once_are_counted_once(real: Results) -> None:
    shared = (Spent("base", 0, entry(3.0, "feature")), Spent("base", 1, entry(3.0, "feature")))
    (group,) = composition.together(perturbed(spending(real, shared, shared)))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))


def test_fits_that_shared_their_noise_have_no_finite_epsilon_together(real: Results) -> None:
    same = (Spent("base", 0, entry(1.0)), Spent("epsilon=2", 0, entry(2.0)))
    (group,) = composition.together(spending(real, same, own_noise=False))
    assert group.epsilon is None
    apart = (Spent("base", 0, entry(1.0)), Spent("base", 1, entry(1.0)))
    (group,) = composition.together(spending(real, apart, own_noise=False))
    assert group.epsilon == pytest.approx(2.0)


def test_what_has_no_finite_epsilon_is_said_beside_it(real: Results) -> None:
    text = str(composition.blocks(spending(real, (Spent("base", 0, entry(1.0)),), ())))
    assert "without a finite ε" in text
    assert "Seeds are public" in text
    assert composition.blocks(spending(real)) == []


def test_suites_on_the_same_data_add_up_and_share_what_was_perturbed_once(real: Results) -> None:
    """What was fitted in either is another release; a fit that both have, by experiment, setting and seed, is one."""
    shared, own = Spent("base", 0, entry(3.0, "feature")), Spent("base", 0, entry(1.0))
    first = perturbed(spending(real, (shared, own)))
    other = replace(first.systems[0], experiment="another-suite's")
    features, fits = composition.together(first, replace(first, suite="second", systems=(other,)))
    assert (features.releases, features.epsilon) == (1, pytest.approx(3.0))
    assert (fits.releases, fits.epsilon) == (2, pytest.approx(2.0))
    (_, fits) = composition.together(first, first)
    assert (fits.releases, fits.epsilon) == (1, pytest.approx(1.0))


def test_features_that_are_protected_within_a_fit_are_released_by_each_fit(real: Results) -> None:
    own = (Spent("base", 0, entry(3.0, "feature")),)
    (group,) = composition.together(spending(real, own, own))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))


def test_one_suite_that_shared_its_noise_leaves_no_finite_epsilon(real: Results) -> None:
    first = spending(real, (Spent("base", 0, entry(1.0)),))
    second = replace(first, systems=(replace(first.systems[0], experiment="other"),), own_noise=False)
    (group,) = composition.together(first, second)
    assert group.epsilon is None


def test_perturbed_data_of_other_names_are_other_releases_though_their_entries_are_equal(real: Results) -> None:
    first = spending(real, (Spent("base", 0, entry(3.0, "feature")),))
    (group,) = composition.together(perturbed(first, "once"), perturbed(first, "again"))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))
