"""Wherever a finite ε is shown, what it takes as fixed stands beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from tasks.models.sessions import ledgers as sessions
from tasks.models.social import ledgers as social
from tasks.privacy.accounting.gaps import GIVEN, GIVEN_EPOCH
from tasks.privacy.accounting.ledger import Event
from tasks.reporting import cards, site
from tasks.reporting.core import figures, headline, ledger
from tasks.reporting.core.results import BASE, Results
from tasks.reporting.sections import composition, lead, summary, tradeoff, verdicts
from tasks.stages.report import report_of
from tests.reporting import shown

K = 10
FIXED = "the configuration"


@pytest.fixture(scope="module")
def given(every: Results) -> Results:
    """All finite entries were chosen on validation data, and are of one unit of which events are known."""
    event = Event(kind="pure-local", parameters={"epsilon": 1.0})
    update = {"given": GIVEN, "events": (event,), "neighbouring": "all interactions of one user added or removed"}
    systems = [
        replace(
            system,
            spent=tuple(
                spent
                if spent.entry.accounted_epsilon is None
                else replace(spent, entry=spent.entry.model_copy(update=update))
                for spent in system.spent
            ),
        )
        for system in every.systems
    ]
    return replace(every, systems=tuple(systems))


PLACES: dict[str, Callable[[Results], str]] = {
    "summary": lambda results: str(summary.budgets(results)),
    "lead": lambda results: lead.lead(results, K),
    "headline": lambda results: next(of.budget for of in headline.standings(results, K) if of.accounted),
    "verdicts": lambda results: verdicts._held(results, results.compared),
    "frontier": lambda results: json.dumps(asdict(figures.frontier(results, K)), default=str),
    "trade-off": lambda results: tradeoff._accounted(results, results.find_compared("dp-popularity"), BASE),
    "composition": lambda results: str(composition.blocks(results)),
    "csv": lambda results: " ".join(f"given {text}" for text in ledger.frame(results)["given"]),
    "board": lambda results: str(site._boards(site.suite(results, report_of(results.paper), shown.claims(results, K)))),
    "card": lambda results: str(
        [cards.card(results, system, K) for system in results.compared if system.name == "dp-popularity"]
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_an_epsilon_takes_as_fixed_stands_beside_it(given: Results, place: str) -> None:
    assert FIXED in PLACES[place](given)


def test_of_two_conditions_the_wider_one_alone_is_said(given: Results) -> None:
    first = given.find_compared("dp-popularity")
    spent = tuple(replace(each, entry=each.entry.model_copy(update={"given": GIVEN_EPOCH})) for each in first.spent)
    mixed = replace(given, systems=tuple(replace(of, spent=spent) if of is first else of for of in given.systems))
    assert verdicts._held(mixed, mixed.compared).endswith(f", given {GIVEN_EPOCH}")


def test_systems_that_were_chosen_on_validation_data_say_so() -> None:
    event = Event(kind="gaussian", parameters={"noise_multiplier": 2.0})
    for entry in social.rigorous(1.0, 1e-5, "sums", 5.0, 10, 3):
        assert entry.given == GIVEN_EPOCH
    assert sessions.released_entry(multipliers=(3.0, 3.0), epsilon=5.0, delta=1e-3).given == GIVEN
    assert sessions._graph_entry("the matrices", "noise", "published", (1.0, 1e-3), (event,), ()).given == GIVEN_EPOCH
