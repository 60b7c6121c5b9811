"""Claimed, accounted and audited budgets side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from tasks.privacy.accounting import gaps
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.reporting.core import audits, ledger
from tasks.reporting.core.results import Results, Spent
from tasks.reporting.sections import details, tables
from tests.reporting import committed
from tests.reporting.example import SEEDS, SPENT


def test_seeds_that_spent_the_same_share_a_line(real: Results) -> None:
    for system in real.systems:
        lines = ledger.lines_at(real, system)
        assert len(lines) == len(SPENT.get(system.name, [None]))
        assert all(line.seeds == SEEDS for line in lines)


def test_a_seed_that_spent_more_has_its_own_line(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    first, *others = system.spent
    more = Spent(first.setting, first.seed, first.entry.model_copy(update={"accounted_epsilon": 2.0}))
    changed = replace(system, spent=(more, *others))
    results = replace(real, systems=tuple(changed if other is system else other for other in real.systems))
    assert [line.seeds for line in ledger.lines_at(results, changed)] == [(0,), (1, 2)]
    assert ledger.total_epsilon(results, changed) == 2.0


def test_budgets_of_different_things_add_up(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    features = [
        Spent(
            spent.setting, spent.seed, spent.entry.model_copy(update={"protects": "feature", "accounted_epsilon": 20.0})
        )
        for spent in system.spent
    ]
    changed = replace(system, spent=(*system.spent, *features))
    assert ledger.total_epsilon(real, changed) == 21.0


def test_one_guarantee_for_two_things_is_counted_once(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    event = Event(kind="discrete-laplace", parameters={"noise_parameter": 0.1, "sensitivity": 10.0})

    def entry(spent: Spent, **update: object) -> Spent:
        return replace(spent, entry=spent.entry.model_copy(update={"events": (event,)} | update))

    both = [entry(spent, protects=what) for spent in system.spent for what in ("interaction", "feature")]
    assert ledger.total_epsilon(real, replace(system, spent=tuple(both))) == 1.0
    apart = [*both, *(entry(spent, protects="feature", neighbouring="another") for spent in system.spent)]
    assert ledger.total_epsilon(real, replace(system, spent=tuple(apart))) == 2.0


def test_one_guarantee_for_two_things_is_told_once_for_all_seeds(real: Results) -> None:
    """Interactions and features share it, whatever entries say of single seeds; another relation shares nothing."""
    system = real.find_compared("dp-popularity")
    event = Event(kind="discrete-laplace", parameters={"noise_parameter": 0.1, "sensitivity": 10.0})

    def budget_lines(**features: object) -> tuple[str, ...]:
        spent = []
        for line in system.spent:
            common = {"events": (event,), "mechanism": "made up"}
            gap = {"protects": "interaction", "gaps": (f"Made up: of seed {line.seed}.",)}
            spent += [
                replace(line, entry=line.entry.model_copy(update=common | what))
                for what in (gap, {"protects": "feature"} | features)
            ]
        changed = replace(system, spent=tuple(spent))
        results = replace(real, systems=(changed,))
        (row,) = [row for row in tables.headline(results, 10).rows if row.name == changed.label]
        return row.cells[-2].lines

    assert budget_lines() == ("feature and interaction together: 1",)
    assert budget_lines(neighbouring="another") == ("feature: 1", "interaction: 1")
    assert budget_lines(accounted_epsilon=None) == ("feature: ∞", "interaction: 1")


def test_an_audit_belongs_to_what_it_says_that_it_audited(real: Results) -> None:
    """Setting, mechanism, observer, budget, δ and protected thing are all those of the line."""
    system = real.find_compared("dp-popularity")
    (line,) = ledger.lines_at(real, system)
    assert line.audit is not None
    assert line.audit["covers"] == {system.experiment: ["base"]}
    assert audits.audit_of(real, system, "epsilon=2", line.entry) is None
    assert audits.audit_of(real, real.find_compared("gerai"), "base", line.entry) is None
    others = {"claimed_epsilon": 2.0, "mechanism": "another", "protects": "feature", "observer": "somebody"}
    for key, value in (others | {"accounted_delta": 1e-5}).items():
        assert audits.audit_of(real, system, "base", line.entry.model_copy(update={key: value})) is None


def test_a_private_line_without_audit_or_reason_is_named(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    assert audits.unexplained_lines(real) == []
    without = replace(real, audit=tuple(record for record in real.audit if system.experiment not in record["covers"]))
    assert audits.unexplained_lines(without) == ["dp-popularity, base: noisy counts made-up"]
    (line,) = ledger.lines_at(without, system)
    assert (line.unjoined, line.audited_note) == ("not audited", "This was not audited.")


def test_a_reason_of_noise_for_another_observer_is_not_one_of_a_claim() -> None:
    """PrivSR's noise on every single submission has an audit, whatever the number of an item's raters."""
    results, _, _ = committed.read("privsr")
    towards = [line for line in ledger.lines(results) if line.entry.observer.startswith("a recommender")]
    claimed = [line for line in towards if line.entry.claimed_epsilon is not None]
    assert {line.system.experiment for line in claimed} == {"privsr-rigorous-local"}
    assert not any("ratings of an item" in line.unaudited for line in claimed)
    assert all("ratings of an item" in line.unaudited for line in towards if line not in claimed)
    (line, *_) = claimed
    new = replace(results, audit=(), systems=(line.system,))
    assert any("towards a recommender" in text for text in audits.unexplained_lines(new))


def test_a_saturated_bound_is_shown_as_such(real: Results) -> None:
    record = dict(real.audit[0]) | {"audited_epsilon": 4.179, "provable": 4.1791, "samples": 1000}
    assert audits.format_bound(record) == "≥ 4.18"
    assert audits.saturation_note(record) == "the most that 1,000 samples can prove, on a worst case built for it"
    assert audits.saturation_note(record | {"audited_epsilon": 4.1}) == ""


def test_one_part_without_a_guarantee_leaves_none_for_the_whole(real: Results) -> None:
    actual = {system.name: ledger.total_epsilon(real, system) for system in real.systems}
    assert actual == dict.fromkeys(actual) | {"dp-popularity": 1.0}


def test_none_is_spelled_out_with_its_reason(real: Results) -> None:
    for row in ledger.frame(real).iter_rows(named=True):
        for kind in ("claimed", "accounted", "audited"):
            if row[f"{kind}_epsilon"] in ("∞", "–", "not audited"):
                assert row[f"{kind}_note"]
            else:
                assert float(row[f"{kind}_epsilon"]) >= 0


def test_noise_that_anybody_could_draw_again_is_named_with_its_remedy(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    kept, remedy = "Noise is drawn in floating point.", "“noise: secure”"
    event = Event(kind="discrete-laplace", parameters={"noise_parameter": 0.1, "sensitivity": 10.0})
    drawn = system.spent[0].entry.model_copy(update={"events": (event,), "gaps": (gaps.SEED, kept)})
    without = LedgerEntry.model_validate(drawn.model_dump() | {"events": (), "mechanism": "none", "gaps": ()})
    assert [ledger.noise(entry) for entry in (drawn, gaps.secure_entry(drawn), without)] == [
        "public seed",
        "secure",
        "",
    ]
    assert [remedy in gap for gap in ledger.gaps(drawn)] == [True, False]
    assert ledger.gaps(gaps.secure_entry(drawn)) == gaps.secure_entry(drawn).gaps
    spent = [replace(of, entry=drawn) for of in system.spent]
    changed = replace(real, systems=[replace(of, spent=spent) if of is system else of for of in real.systems])
    assert any(remedy in gap for _, named in details.gaps(changed) for gap in named)
    rows = ledger.frame(changed).filter(pl.col("model") == "dp-popularity")
    assert set(rows["noise"]) == {"public seed"}


def test_every_system_has_a_row(real: Results, read: Callable[..., Results]) -> None:
    assert set(ledger.frame(real)["model"]) == {system.name for system in real.systems}
    swept = ledger.frame(read(sweep=True)).filter(pl.col("model") == "gerai")
    assert {"base", "epsilon=0.1", "features_epsilon=0.5", "dimension=100"} <= set(swept["setting"])


def test_delta_is_shown_where_there_is_one() -> None:
    assert [ledger.format_budget(None), ledger.format_budget(20.0), ledger.format_budget(1.5, 1e-5)] == [
        "∞",
        "20",
        "1.5, δ = 1e-05",
    ]


def test_what_was_spent_on_synthetic_data_is_labelled(real: Results, demo: Results) -> None:
    assert set(ledger.frame(real)["data"]) == {"real"}
    assert set(ledger.frame(demo)["data"]) == {"synthetic"}


def test_what_a_mechanism_keeps_at_any_budget_is_said_where_it_was_used(real: Results) -> None:
    (note,) = details.notes(real)
    assert "probability one half at any budget" in note
    without = replace(real, systems=tuple(system for system in real.systems if "gerai" not in system.name))
    assert details.notes(without) == []


def test_runs_that_spent_unequally_are_told_together_and_observers_apart(real: Results) -> None:
    """Three runs towards one observer, two of them unequal, and the same releases towards another."""
    system = real.systems[0]

    def line(seed: int, observer: str, epsilon: float | None) -> ledger.Line:
        entry = LedgerEntry(
            protects="rating",
            neighbouring=f"one value, towards {observer}",
            observer=observer,
            mechanism="made up",
            accounting="rigorous",
            claimed_epsilon=1.0,
            claimed_delta=1e-6,
            accounted_epsilon=epsilon,
            accounted_delta=1e-6,
            reason="" if epsilon is not None else "nothing follows",
        )
        return ledger.Line(system, "base", (seed,), entry, None)

    lines = [
        line(0, "some", 1.0),
        line(1, "some", 1.0),
        line(0, "all", 10.5),
        line(1, "all", 12.25),
        line(2, "all", 11),
    ]
    assert ledger.budgets(lines, "s") == [
        ledger.Budget("ratings, towards some", "1, δ = 1e-06", "1, δ = 1e-06", "not audited"),
        ledger.Budget("ratings, towards all", "1, δ = 1e-06", "10.5 to 12.25, δ = 1e-06", "not audited"),
    ]
    assert [budget.accounted for budget in ledger.budgets([line(0, "none", None)])] == ["∞"]


def test_what_a_guarantee_takes_as_fixed_is_said_with_it(real: Results) -> None:
    system = real.find_compared("dp-popularity")
    spent = [
        replace(spent_, entry=spent_.entry.model_copy(update={"given": "the configuration"})) for spent_ in system.spent
    ]
    (budget,) = ledger.budgets(ledger.lines_at(real, replace(system, spent=tuple(spent))))
    assert budget.accounted == "1, given the configuration"
    (budget,) = ledger.budgets(ledger.lines_at(real, system))
    assert budget.accounted == "1"


def test_every_known_gap_is_listed_once(every: Results, real: Results) -> None:
    for results in (every, real):
        listed = [gap for _, named in details.gaps(results) for gap in named]
        assert len(listed) == len(set(listed))
        assert {*listed} == {gap for line in ledger.lines(results) for gap in ledger.gaps(line.entry)} != set()


@pytest.mark.parametrize(("suite", "named"), [("dpcrosue", False), ("dpcrosue-ione", True)])
def test_budgets_name_the_network_where_there_are_two(suite: str, named: bool) -> None:
    results, _, _ = committed.read(suite)
    networks = {line.network for line in ledger.lines(results)} - {""}
    assert networks == ({"foursquare", "twitter"} if named else {"foursquare"})
    lines = [line for row in tables.headline(results, 0).rows for cell in row.cells[-3:] for line in cell.lines]
    assert lines
    assert any(line.startswith(("foursquare: ", "twitter: ")) for line in lines) == named
