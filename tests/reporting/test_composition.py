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


def test_settings_and_seeds_of_all_systems_add_up(real: Results) -> None:
    first = (Spent("base", 0, entry(1.0)), Spent("base", 1, entry(1.0)), Spent("epsilon=2", 0, entry(2.0)))
    (group,) = composition.together(spending(real, first, (Spent("base", 0, entry(0.5)),)))
    assert (group.releases, group.largest, group.epsilon) == (4, 2.0, pytest.approx(4.5))


def test_data_that_were_perturbed_once_are_counted_once(real: Results) -> None:
    shared = (Spent("base", 0, entry(3.0, "feature")), Spent("base", 1, entry(3.0, "feature")))
    (group,) = composition.together(spending(real, shared, shared))
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


def test_who_could_draw_the_noise_again_is_said(real: Results) -> None:
    secure = (Spent("base", 0, entry(1.0).model_copy(update={"noise": "secure"})),)
    research = (Spent("base", 0, entry(1.0)),)
    label = real.full_label(real.systems[1])
    mixed = str(composition.blocks(spending(real, research, secure)))
    assert "Seeds are public" in mixed
    assert f"The noise of {label} is secure" in mixed
    alone = str(composition.blocks(spending(real, secure)))
    assert "Seeds are public" not in alone
    assert "is secure" in alone
