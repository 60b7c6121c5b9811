"""What all releases of a suite, or of several on the same data, spend together."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.results import compose as compose_committed
from tasks.privacy import units
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.terms import Unit
from tasks.results.composition import Spender, compose, have_same_sensitive, without_noise
from tasks.results.facts import System, Together
from tasks.results.load import Line
from tests.pages import committed
from tests.results import made

KINDS = {"features": "feature", "features-within-bounds": "feature", "sensitive-rating": "rating", "edge": "edge"}
Spent = tuple[str, int, LedgerEntry] | tuple[str, int, LedgerEntry, str]
"""Setting, seed, entry, and its network where there is one."""


def entry(epsilon: float, unit: Unit = "user", **more: Any) -> LedgerEntry:
    return made.entry(epsilon, unit, **{"protects": KINDS.get(unit, "interaction")} | more)


def endless(claimed: float | None, unit: Unit = "user", **more: Any) -> LedgerEntry:
    nothing = {"accounted_epsilon": None, "claimed_epsilon": claimed, "reasons": ("true-data",)}
    return entry(1.0, unit, **nothing, **more)


def spender(
    *spent: Sequence[Spent], suite: str = "s", features: str = "processed/d", prefix: str = "e", **config: Any
) -> Spender:
    """A suite whose systems spent this, each the same features and configuration."""
    systems, lines = [], []
    for number, of in enumerate(spent):
        settings = [setting for setting, *_ in of if setting != "base"]
        sweep = [dict([part.split("=") for part in setting.split(",")]) for setting in dict.fromkeys(settings)]
        parameters = {"features": features, "sweep": sweep, "config": config}
        about = {"model": "m", "label": f"{number}", "dataset": "d", "seeds": (0,), "cut_off": {}}
        systems.append(System(experiment=f"{prefix}{number}", parameters=parameters, **about))
        for setting, seed, spending, *network in of:
            name = "".join(map(str, network))
            lines.append(Line(len(lines), f"{prefix}{number}", setting, (seed,), name, spending, None))
    known = {system.experiment: [*system.settings()] for system in systems}
    results: Any = SimpleNamespace(suite=SimpleNamespace(suite=suite), lines=lines, settings=known.__getitem__)
    return results, systems


def only(*spenders: Spender) -> Together:
    (group,) = compose(spenders)
    return group


def numbers(group: Together) -> tuple[int, int, float | None]:
    """Releases, those that are left out, and ε to nine digits."""
    return group.releases, group.left_out, None if group.epsilon is None else round(group.epsilon, 9)


def test_settings_and_seeds_of_all_systems_add_up() -> None:
    first = [("base", 0, entry(1.0)), ("base", 1, entry(1.0)), ("epsilon=2", 0, entry(2.0))]
    group = only(spender(first, [("base", 0, entry(0.5))]))
    assert (group.releases, group.largest, group.epsilon) == (4, 2.0, pytest.approx(4.5))


def test_data_that_were_perturbed_once_are_counted_once() -> None:
    shared = [("base", 0, entry(3.0, "features")), ("base", 1, entry(3.0, "features"))]
    assert numbers(only(spender(shared, shared, features="perturbed/x"))) == (2, 0, 6.0)
    assert numbers(only(spender(shared, shared))) == (4, 0, 12.0), "within fits each is a release"


def test_suites_on_the_same_data_share_what_was_perturbed_and_add_what_was_fitted() -> None:
    shared = [("base", 0, entry(3.0, "features")), ("base", 0, entry(1.0))]
    first = spender(shared, features="perturbed/x")
    other = spender(shared, suite="t", features="perturbed/x", prefix="f")
    features, fits = compose([first, other])
    assert (numbers(features), numbers(fits)) == ((1, 0, 3.0), (2, 0, 2.0))
    features, fits = compose([first, first])
    assert (numbers(features), numbers(fits)) == ((1, 0, 3.0), (1, 0, 1.0))
    (features, _) = compose([first, spender(shared, features="perturbed/y", prefix="f")])
    assert numbers(features) == (2, 0, 6.0)


def test_all_events_count_in_all_of_their_steps_at_the_largest_delta() -> None:
    noise = Event(kind="gaussian", parameters={"noise_multiplier": 40.0}, count=9)
    pure = entry(0.25)
    of_user = entry(0.25, events=(*pure.events, noise), accounted_delta=1e-3)
    single = [("base", seed, entry(0.5, "interaction")) for seed in (0, 1)]
    _, group = compose([spender([("base", 0, of_user)], single)])
    events = [units.group_event(event, 2) for event in of_user.events]
    expected = account([*events, *(event for _, _, of in single for event in of.events)], 1e-3)
    assert (group.epsilon, group.delta) == (pytest.approx(expected.epsilon), 1e-3)


def test_a_smaller_unit_pays_for_whole_users_twice_and_a_larger_one_names_what_does_not_bound_it() -> None:
    of_users, of_one = compose([spender([("base", 0, entry(1.0))], [("base", 0, entry(0.5, "interaction"))])])
    assert (numbers(of_users), numbers(of_one)) == ((1, 1, 1.0), (2, 0, 2.5))
    assert of_users.left_out == 1


def test_private_releases_without_a_bound_are_counted_next_to_those_that_have_one() -> None:
    """What claims nothing and has no noise is no private release."""
    bounded = [("base", 0, entry(1.0))]
    non_private = (Event(kind="non-private"),)
    for other, left_out in (
        (endless(0.4, events=non_private), 1),
        (endless(None), 1),
        (endless(None, events=non_private), 0),
    ):
        suite = spender(bounded, [("base", 0, other)])
        assert numbers(only(suite)) == (1, left_out, 1.0)
        assert without_noise([suite]) == ([] if left_out else ["e1"])


def test_features_that_count_interactions_or_edges_spend_on_these() -> None:
    """One edge changes the counts of two users. Features without counts, and the features' own row, gain nothing."""
    counts = [("base", 0, entry(3.0, "features-within-bounds", given=("bounds",)))]
    for unit, steps in (("user", 1), ("interaction", 1), ("edge", 2)):
        own, features = compose([spender([("base", 0, entry(1.0, unit))], counts)])  # type: ignore[arg-type]
        assert (numbers(own), own.given) == ((2, 0, 1.0 + 3.0 * steps), ("bounds",))
        assert numbers(features) == (1, 0, 3.0)
        plain = [("base", 0, entry(3.0, "features"))]
        own, _ = compose([spender([("base", 0, entry(1.0, unit))], plain)])  # type: ignore[arg-type]
        assert numbers(own) == (1, 0, 1.0)


def test_each_setting_of_a_budget_of_perturbed_data_releases_a_network_anew() -> None:
    settings = ("base", "edges_epsilon=1.0", "dimension=8")
    spent: list[Spent] = [(setting, 0, entry(5.0, "features"), "left") for setting in settings]
    group = only(spender(spent, spent, features="perturbed/x"))
    assert (group.network, numbers(group)) == ("left", (2, 0, 10.0))


def test_an_entry_towards_everyone_counts_towards_each_observer() -> None:
    towards = entry(1.0, "sensitive-rating", observer="recommender-of-sums")
    group = only(spender([("base", 0, towards)], [("base", 0, entry(0.5, "sensitive-rating"))]))
    assert (group.observer, numbers(group)) == ("recommender-of-sums", (2, 0, 1.5))


def test_ratings_that_another_setting_publishes_have_no_finite_epsilon_together() -> None:
    spent: list[Spent] = [("base", 0, entry(0.5, "sensitive-rating"))]
    for settings, epsilon in ((["base"], 0.5), (["base", "sensitive_share=0.2"], None)):
        plain: list[Spent] = [(setting, 0, entry(1.0, "edge")) for setting in settings]
        suite = spender(spent, plain, sensitive_share=0.1)
        ratings, _ = compose([suite])
        assert ratings.epsilon == (epsilon if epsilon is None else pytest.approx(epsilon))
        assert have_same_sensitive([suite]) == (epsilon is not None)


def test_a_unit_that_bounds_nothing_is_never_composed() -> None:
    assert only(spender([("base", 0, entry(1.0, "training-triple"))])).epsilon is None


@pytest.mark.parametrize("suite", ["demo", "dpcrosue", "dpvae-ml-1m", "privsr-epinions"])
def test_together_committed_releases_spend_at_least_what_one_of_them_does(suite: str) -> None:
    results = committed.results(suite)
    groups = compose([(results, results.suite.systems)])
    assert groups
    for group in groups:
        assert group.epsilon is None or group.epsilon >= group.largest
        assert group.protects


@pytest.mark.usefixtures("composed_anew")
def test_suites_of_one_download_are_composed_and_others_stand_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path.cwd()
    (tmp_path / "data/results").mkdir(parents=True)
    for name in ("demo", "dpcrosue-weibo-twin"):
        (tmp_path / "data/results" / name).symlink_to(root / "data/results" / name)
    again = tmp_path / "data/results/demo-again"
    shutil.copytree(root / "data/results/demo", again)
    facts = (again / "suite.json").read_text()
    (again / "suite.json").write_text(facts.replace('"suite": "demo"', '"suite": "demo-again"'))
    (again / "tuning.csv").write_text("experiment,config\n" + 7 * "demo-bpr,{}\n" + "not-there,{}\n")
    for name in ("params.yaml", "suites", "data/reference"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    composed = {source: of for source, *of in compose_committed()}
    together, open_, trials = composed["demo"]
    assert {*composed} == {"demo", "weibo-twin"}
    assert trials == {"demo": 0, "demo-again": 7}
    users = next(of for of in together if of.unit == "user")
    # Three seeds each of dp-popularity, of dpae, and of counts of a user's ratings, with ε = 20 each: both suites name
    # these fits alike, so they are the same. Left out: three seeds of dpmf-rigorous, dpmf, dpne, gerai and gerai-nl.
    assert (users.releases, users.left_out, users.largest) == (9, 15, 1.0)
    assert users.epsilon == pytest.approx(63.73, abs=0.005)
    assert users.delta == 0.003
    assert set(users.given) == {"configuration", "epoch", "bounds", "catalogue"}
    assert "demo-bpr" in open_
    assert "demo-dp-popularity" not in open_
