"""What all releases of a suite spend together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tasks.models.sessions import ledgers as sessions
from tasks.models.social import ledgers as social
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import multidimensional
from tasks.reporting.core import sweeps, units
from tasks.reporting.core.results import Results, Spent
from tasks.reporting.sections import composition
from tests.reporting import committed

USER = "all interactions of one user added or removed"
FEATURES = "all features of one user replaced"
SINGLE = "one interaction added or removed"


def entry(epsilon: float, protects: str = "interaction", neighbouring: str = "") -> LedgerEntry:
    event = Event(kind="discrete-laplace", parameters={"noise_parameter": epsilon, "sensitivity": 1.0})
    return LedgerEntry.model_validate(
        {
            "protects": protects,
            "neighbouring": neighbouring or (FEATURES if protects == "feature" else USER),
            "mechanism": "counts",
            "accounting": "rigorous",
            "claimed_epsilon": epsilon,
            "claimed_delta": 0.0,
            "accounted_epsilon": account((event,)).epsilon,
            "accounted_delta": 0.0,
            "events": (event,),
        }
    )


def spending(results: Results, *spent: tuple[Spent, ...]) -> Results:
    systems = tuple(replace(system, spent=of) for system, of in zip(results.systems, spent, strict=False))
    return replace(results, systems=systems)


def perturbed(results: Results, name: str = "features") -> Results:
    """All systems read the same perturbed data."""
    systems = [
        replace(system, parameters={**system.parameters, "features": f"perturbed/{name}"}) for system in results.systems
    ]
    return replace(results, systems=tuple(systems))


def test_settings_and_seeds_of_all_systems_add_up(real: Results) -> None:
    first = (Spent("base", 0, entry(1.0)), Spent("base", 1, entry(1.0)), Spent("epsilon=2", 0, entry(2.0)))
    (group,) = composition.compose_releases(spending(real, first, (Spent("base", 0, entry(0.5)),)))
    assert (group.releases, group.largest, group.epsilon) == (4, 2.0, pytest.approx(4.5))


def test_data_that_were_perturbed_once_are_counted_once(real: Results) -> None:
    shared = (Spent("base", 0, entry(3.0, "feature")), Spent("base", 1, entry(3.0, "feature")))
    (group,) = composition.compose_releases(perturbed(spending(real, shared, shared)))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))


def test_what_has_no_finite_epsilon_is_said_beside_it(real: Results) -> None:
    text = str(composition.blocks(spending(real, (Spent("base", 0, entry(1.0)),), ())))
    assert "have no finite ε" in text
    assert "Seeds are public" in text
    assert composition.blocks(spending(real)) == []


def test_suites_on_the_same_data_add_up_and_share_what_was_perturbed_once(real: Results) -> None:
    """What was fitted in either is another release; a fit that both have, by experiment, setting and seed, is one."""
    shared, own = Spent("base", 0, entry(3.0, "feature")), Spent("base", 0, entry(1.0))
    first = perturbed(spending(real, (shared, own)))
    other = replace(first.systems[0], experiment="another-suite's")
    features, fits = composition.compose_releases(first, replace(first, suite="second", systems=(other,)))
    assert (features.releases, features.epsilon) == (1, pytest.approx(3.0))
    assert (fits.releases, fits.epsilon) == (2, pytest.approx(2.0))
    (_, fits) = composition.compose_releases(first, first)
    assert (fits.releases, fits.epsilon) == (1, pytest.approx(1.0))


def test_features_that_are_protected_within_a_fit_are_released_by_each_fit(real: Results) -> None:
    own = (Spent("base", 0, entry(3.0, "feature")),)
    (group,) = composition.compose_releases(spending(real, own, own))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))


def test_perturbed_data_of_other_names_are_other_releases_though_their_entries_are_equal(real: Results) -> None:
    first = spending(real, (Spent("base", 0, entry(3.0, "feature")),))
    (group,) = composition.compose_releases(perturbed(first, "once"), perturbed(first, "again"))
    assert (group.releases, group.epsilon) == (2, pytest.approx(6.0))


def test_words_for_one_relation_are_one_unit() -> None:
    words = (USER, "all training interactions of one user taken out, the place in the batches kept")
    assert {units.unit(entry(1.0, "interaction", of)) for of in words} == {units.USER}
    assert units.unit(entry(1.0, "interaction", SINGLE)) == units.INTERACTION


def test_relations_of_other_words_and_the_same_unit_are_one_row(real: Results) -> None:
    words = (USER, "all training interactions of one user taken out, the place in the batches kept")
    (group,) = composition.compose_releases(
        spending(real, *((Spent("base", 0, entry(1.0, "interaction", of)),) for of in words))
    )
    assert (group.releases, group.neighbouring, group.epsilon) == (2, units.USER, pytest.approx(2.0))


def test_all_events_count_each_time_in_all_of_their_steps_at_the_largest_delta(real: Results) -> None:
    pure, noise = entry(0.25), Event(kind="gaussian", parameters={"noise_multiplier": 40.0}, count=9)
    of_user = pure.model_copy(update={"events": (*pure.events, noise), "accounted_delta": 1e-3})
    single = (Spent("base", 0, entry(0.5, "interaction", SINGLE)), Spent("base", 1, entry(0.5, "interaction", SINGLE)))
    _, of_one = composition.compose_releases(spending(real, (Spent("base", 0, of_user),), single))
    twice = [units.group_event(event, 2) for event in of_user.events]
    expected = account([*twice, *(event for spent in single for event in spent.entry.events)], 1e-3)
    assert (of_one.epsilon, of_one.delta) == (pytest.approx(expected.epsilon), 1e-3)


def test_a_smaller_unit_pays_for_whole_users_twice_and_a_larger_one_names_what_does_not_bound_it(real: Results) -> None:
    users, single = (Spent("base", 0, entry(1.0)),), (Spent("base", 0, entry(0.5, "interaction", SINGLE)),)
    of_users, of_one = composition.compose_releases(spending(real, users, single))
    assert (of_users.counted, of_users.epsilon) == ("1 (+ 1)", pytest.approx(1.0))
    assert (of_one.counted, of_one.epsilon) == ("2", pytest.approx(2.5))
    assert "In brackets" in str(composition.blocks(spending(real, users, single)))


def test_private_releases_without_a_bound_are_counted_beside_those_that_have_one(real: Results) -> None:
    bounded = entry(5.0, "feature")
    given = bounded.model_copy(update={"neighbouring": units.FEATURES_GIVEN})
    endless = bounded.model_copy(update={"accounted_epsilon": None, "reason": "Bounds are fitted."})
    open_one = (Spent("base", 0, endless), Spent("base", 0, given))
    plain, fitted = composition.compose_releases(spending(real, (Spent("base", 0, bounded),), open_one))
    assert (plain.counted, plain.epsilon) == ("1 (+ 1)", pytest.approx(5.0))
    assert plain.total == f"5, of 1 of 2 releases; left out: {real.systems[1].experiment}"
    assert (fitted.counted, fitted.epsilon) == ("2", pytest.approx(10.0))  # both hold given the bounds


def test_features_that_count_interactions_or_edges_spend_on_these(real: Results) -> None:
    """One edge changes the counts of two users. Features without counts, and the features' own row, gain nothing."""
    without = entry(3.0, "feature")
    counts = without.model_copy(update={"neighbouring": units.FEATURES_GIVEN, "given": "the bounds"})
    for neighbouring, protects, steps in (
        (USER, "interaction", 1),
        (SINGLE, "interaction", 1),
        (units.EDGE, "edge", 2),
    ):
        spent = (Spent("base", 0, entry(1.0, protects, neighbouring)),)
        own, features = composition.compose_releases(spending(real, spent, (Spent("base", 0, counts),)))
        assert (own.releases, own.epsilon, own.given) == (2, pytest.approx(1.0 + 3.0 * steps), "the bounds")
        assert (features.counted, features.epsilon) == ("1", pytest.approx(3.0))
        own, _ = composition.compose_releases(spending(real, spent, (Spent("base", 0, without),)))
        assert (own.counted, own.epsilon) == ("1", pytest.approx(1.0))


def test_a_claim_of_which_nothing_follows_is_a_release_without_a_bound(real: Results) -> None:
    """A paper's own mechanism whose events count as not private; what claims nothing is none."""
    bounded = entry(1.0)
    nothing = bounded.model_copy(
        update={"accounted_epsilon": None, "reason": "No bound.", "events": (Event(kind="non-private"),)}
    )
    claimed = nothing.model_copy(update={"claimed_epsilon": 0.4})
    of = (Spent("base", 0, bounded),)
    for other, counted in ((claimed, "1 (+ 1)"), (nothing.model_copy(update={"claimed_epsilon": None}), "1")):
        (together,) = composition.compose_releases(spending(real, of, (Spent("base", 0, other),)))
        assert together.counted == counted


def test_each_setting_of_a_budget_releases_a_network_anew(real: Results) -> None:
    of = entry(5.0, "feature")
    spent = tuple(Spent(setting, 0, of, "left") for setting in ("base", "edges_epsilon=1.0", "dimension=8"))
    (group,) = composition.compose_releases(perturbed(spending(real, spent, spent)))
    assert (group.releases, group.epsilon) == (2, pytest.approx(10.0))


def test_a_rigorous_release_of_a_network_counts_beside_one_given_the_bounds(real: Results) -> None:
    given = entry(5.0, "feature").model_copy(update={"neighbouring": units.FEATURES_GIVEN})
    releases = (Spent("base", 0, given, "left"),), (Spent("base", 0, entry(1.0, "feature"), "left"),)
    groups = composition.compose_releases(perturbed(spending(real, *releases)))
    assert [(group.neighbouring, group.epsilon) for group in groups] == [
        (units.FEATURES_GIVEN, pytest.approx(6.0)),
        (units.FEATURES, pytest.approx(1.0)),
    ]


def test_an_entry_towards_everybody_counts_towards_each_observer(real: Results) -> None:
    towards = entry(1.0, "rating", f"{units.SENSITIVE}, towards a recommender")
    towards = towards.model_copy(update={"observer": "a recommender"})
    everybody = entry(0.5, "rating", units.SENSITIVE)
    (group,) = composition.compose_releases(
        spending(real, (Spent("base", 0, towards),), (Spent("base", 0, everybody),))
    )
    assert (group.observer, group.releases, group.epsilon) == ("a recommender", 2, pytest.approx(1.5))


def test_ratings_that_another_share_publishes_have_no_finite_epsilon_together(real: Results) -> None:
    """Of a system without noise, too: at a share of 0 it learns from what others keep secret."""
    spent = (Spent("base", 0, entry(0.5, "rating", units.SENSITIVE)),), ()
    first, second = (
        replace(system, parameters={**system.parameters, "config": {"sensitive_share": 0.1}})
        for system in spending(real, *spent).systems[:2]
    )
    other = replace(second, parameters={**second.parameters, "config": {"sensitive_share": 0.0}})
    for systems, epsilon in (((first, second), pytest.approx(0.5)), ((first, other), None)):
        together = replace(real, systems=systems)
        (group,) = composition.compose_releases(together)
        assert group.epsilon == epsilon
        assert (composition.SHARES in str(composition.blocks(together))) == (epsilon is None)
    elsewhere = replace(second, dataset="other folds")
    (group,) = composition.compose_releases(replace(real, systems=(first, elsewhere)))
    assert group.epsilon is None


def test_a_setting_of_another_share_is_one_of_other_sensitive_ratings(real: Results) -> None:
    (first, *_) = spending(real, (Spent("base", 0, entry(0.5, "rating", units.SENSITIVE)),)).systems
    shared = replace(first, parameters={**first.parameters, "config": {"sensitive_share": 0.1}})
    for setting, share in (("base", 0.1), ("sensitive_share=0.5", 0.5), ("epsilon=1.0,sensitive_share=0.2", 0.2)):
        assert sweeps.value_at(shared, setting, "sensitive_share") == share


def test_a_relation_that_no_unit_is_known_of_is_never_composed(real: Results) -> None:
    (group,) = composition.compose_releases(
        spending(real, (Spent("base", 0, entry(1.0, "interaction", "an odd change")),))
    )
    assert group.epsilon is None


def test_every_relation_of_committed_ledgers_with_a_finite_epsilon_has_a_unit() -> None:
    finite = {
        entry.neighbouring.removesuffix(f", towards {entry.observer}")
        for folder in Path("data/results").glob("*/ledger.json")
        for system in committed.read(folder.parent.name)[0].systems
        for entry in (spent.entry for spent in system.spent)
        if entry.accounted_epsilon is not None and entry.events
    }
    assert len(finite) > 8
    assert finite <= set(units.RELATIONS)
    of_code = (
        multidimensional.REPLACED,
        f"{multidimensional.REPLACED}, given {multidimensional.BOUNDS}",
        f"{multidimensional.REPLACED}, given {multidimensional.CATEGORIES}",
        f"{multidimensional.REPLACED}, given {multidimensional.BOUNDS} and {multidimensional.CATEGORIES}",
        sessions.VISIT,
        sessions.VISIT_GIVEN,
        sessions.released_entry(multipliers=(3.0, 3.0), epsilon=5.0, delta=1e-3).neighbouring,
        social.VALUE,
    )
    assert set(of_code) <= set(units.RELATIONS)
    assert set(units.RELATIONS.values()) == set(units.STEPS)
    assert all(next(iter(of.items())) == (unit, 1) for unit, of in units.STEPS.items())


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("laplace", {"noise_multiplier": 2.0}),
        ("discrete-laplace", {"noise_parameter": 0.25, "sensitivity": 2.0}),
        ("pure-local", {"epsilon": 0.5}),
    ],
)
def test_two_steps_cost_twice_the_budget(kind: str, parameters: dict[str, float]) -> None:
    event = Event(kind=kind, parameters=parameters, count=3)
    assert account((units.group_event(event, 2),)).epsilon == pytest.approx(2 * account((event,)).epsilon)  # type: ignore[operator]


def test_two_steps_of_gaussian_noise_are_twice_its_sensitivity_and_sampling_gains_nothing() -> None:
    sampled = Event(kind="sampled-gaussian", parameters={"noise_multiplier": 3.0, "sampling_probability": 0.5}, count=4)
    gaussian = Event(kind="gaussian", parameters={"noise_multiplier": 3.0}, count=4)
    twice = gaussian.model_copy(update={"parameters": {"noise_multiplier": 1.5}})
    assert units.group_event(sampled, 2) == units.group_event(gaussian, 2) == twice
