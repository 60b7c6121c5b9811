"""Stage `attack-edges`: what it writes follows from the models, worlds share no noise, and bad suites are refused."""

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from tasks.attacks import edge_worlds, edges
from tasks.config.params import PARAMS_FILE, Params, load
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.hashing import Uniforms
from tasks.evaluation import ranking
from tasks.models.sessions.dipsgnn import DIPSGNN
from tasks.pipeline.common import RUNS, read_json
from tasks.privacy.mechanisms import aggregation
from tasks.stages import attack_edges, train
from tasks.stages.attack_edges import InteractionAttack, Trained, recommended_lists, released_model
from tasks.stages.inputs import read_inputs
from tests.stages import tiny_embeddings, tiny_next

OUT = RUNS / "tiny" / "edges"
DELTA = 1e-5


def make() -> None:
    tiny_next.build(Path())
    for model in tiny_next.SYSTEMS:
        train.main(f"tiny-{model}")
        tiny_embeddings.passed(Path(), f"tiny-{model}")
    attack_edges.main("tiny")


@pytest.fixture
def params(inside: Path) -> Params:
    """The parameters, read inside that workspace."""
    return load(inside / PARAMS_FILE)


def attack_of(params: Params, **changes: object) -> InteractionAttack:
    attack = InteractionAttack("tiny", params)
    attack.options = attack.options.model_copy(update=changes)
    return attack


def trained(system: str) -> Trained:
    return Trained(system, system, "base")


def order(model: DIPSGNN) -> np.ndarray:
    n_items = model.network.items.num_embeddings
    return ranking.item_order(Uniforms.of(1, [], range(n_items)))


def rows(**where: object) -> list[dict]:
    table = contracts.read(OUT / "edges.parquet", edges.EDGES)
    return [row for row in table.iter_rows(named=True) if all(row[key] == value for key, value in where.items())]


@pytest.mark.usefixtures("inside")
def test_every_budget_and_the_control_are_attacked_in_both_worlds_on_both_releases() -> None:
    table = contracts.read(OUT / "edges.parquet", edges.EDGES)
    actual = Counter(table.select("system", "epsilon").rows())
    budgets = [("tiny-dipsgnn", 5.0), ("tiny-dipsgnn", 1.0), ("tiny-dipsgnn-rigorous", 5.0), ("tiny-edgerand", 5.0)]
    everything = dict.fromkeys(budgets + [(system, None) for system in tiny_next.ATTACKED], 9)
    assert actual == everything | {(control, None): 6 for control in edges.CONTROLS}
    kinds = set(itertools.product(("aggregates", "recommendations", "every-list"), ("removed", "swapped", "last")))
    assert set(table.select("target", "world").rows()) == kinds
    assert set(table["setting"]) == {"base"}  # other clips are other systems
    assert (table["low"] <= table["advantage"]).all()
    assert (table["advantage"] <= table["high"]).all()
    assert set(table.filter(pl.col("world") == "removed")["targets"]) == {6}
    assert set(table["trials"]) == {16}
    assert not table.filter(pl.col("target") != "aggregates")["theory"].is_not_null().any()
    run = read_json(OUT / "inputs.json")
    assert run["synthetic"]
    assert [record["name"] for record in run["checks"]] == tiny_next.ATTACKED


@pytest.mark.usefixtures("inside")
def test_without_noise_aggregates_tell_every_interaction() -> None:
    control = rows(epsilon=None, target="aggregates")
    assert [(row["advantage"], row["low"], row["theory"]) for row in control] == [(1.0, 1.0, 1.0)] * 9


@pytest.mark.usefixtures("inside")
def test_the_last_visit_shows_in_the_lists_at_every_budget_and_in_no_control() -> None:
    """... of inference without noise, though sequences repeat items. Lists that no event has changed tell none."""
    last = rows(system="tiny-dipsgnn", world="last", target="every-list")
    assert [row["epsilon"] for row in last] == [5.0, 1.0, None]
    assert all(row["low"] > 0 and row["advantage"] >= 0.5 for row in last), [
        (row["advantage"], row["low"], row["high"]) for row in last
    ]
    assert {row["advantage"] for row in rows(system="popular-lists")} == {0.0}
    # a mean over six targets of eight measured trials in either world has a standard deviation of 0.15
    assert all(abs(row["advantage"]) < 0.6 for row in rows(system="random-lists"))


def test_theory_is_that_of_the_matrices_with_the_models_noise(params: Params) -> None:
    """2 Φ(√R ‖difference‖/(2σ)) - 1 with σ and R from the accounting, both matrices written out, a mean of targets."""
    targets = attack_of(params).targets
    noise = {
        "tiny-dipsgnn": (aggregation.sigma(1, 0.4, 5.0, DELTA), tiny_next.EPOCHS),
        "tiny-dipsgnn-rigorous": (aggregation.rigorous_sigma(tiny_next.EPOCHS, 0.4, 5.0, DELTA), tiny_next.EPOCHS),
        "tiny-edgerand": (aggregation.sigma(1, 1.0, 5.0, DELTA), 1),
    }
    for (system, (sigma, releases)), last in itertools.product(noise.items(), (False, True)):
        model = attack_of(params).model(trained(system))
        expected = []
        for target in targets:
            change = np.zeros((tiny_next.N_ITEMS, tiny_next.N_ITEMS))
            for world, sign in ((np.delete(target.items, -1 if last else target.position), 1), (target.items, -1)):
                for before, after in itertools.pairwise(world):
                    change[before, after] += sign
            states = model.aggregated_states(target.user).double().numpy()
            again = math.sqrt(2) if system == "tiny-dipsgnn" and not last else 1.0  # with the next visit
            distance = math.hypot(np.linalg.norm(change @ states), again * np.linalg.norm(change.T @ states))
            expected.append(2 * norm.cdf(math.sqrt(releases) * distance / (2 * sigma)) - 1)
        (row,) = rows(system=system, target="aggregates", world="last" if last else "removed", epsilon=5.0)
        assert row["theory"] == pytest.approx(np.mean(expected), rel=1e-9)


def test_aggregates_were_released_in_the_epochs_that_ran(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap on epochs is no release."""
    attack = attack_of(params)
    epochs = attack.epochs(trained("tiny-dipsgnn"))
    assert epochs == tiny_next.EPOCHS  # nothing ended it before
    short = {"base": {"3": [{"epoch": 1}]}}
    monkeypatch.setattr(attack_edges, "read_json", lambda _: short)
    assert attack.epochs(trained("tiny-dipsgnn")) == 1
    for system, releases in (("tiny-dipsgnn", 1), ("tiny-edgerand", 1)):
        model = attack_of(params).model(trained(system))
        assert released_model(model, attack.options, order(model), 1).releases == releases
        assert released_model(model, attack.options, order(model), epochs).releases <= epochs


@pytest.mark.usefixtures("inside")
def test_more_noise_is_less_advantage_and_sound_noise_hides_what_published_noise_does_not() -> None:
    """Of the best attacker, so without chance."""
    theory = {(row["system"], row["epsilon"]): row["theory"] for row in rows(target="aggregates", world="removed")}
    assert 0 < theory["tiny-dipsgnn", 1.0] < theory["tiny-dipsgnn", 5.0] < 1
    assert theory["tiny-dipsgnn-rigorous", 5.0] < theory["tiny-dipsgnn", 5.0]
    # No (ε, δ)-private release is told with more than this (Kairouz, Oh and Viswanath, ICML 2015)
    assert theory["tiny-dipsgnn-rigorous", 5.0] <= (math.exp(5) - 1 + 2 * DELTA) / (math.exp(5) + 1)


def test_published_inference_has_no_noise_so_that_a_list_tells_all_or_nothing(params: Params) -> None:
    attack = attack_of(params)
    model = attack.model(trained("tiny-dipsgnn"))
    advantage = 0
    for target in attack.targets:
        changed = np.delete(target.items, target.position)
        true, false = (
            recommended_lists(model, target.user, items, attack.options, order(model), 0)[:, -1]
            for items in (target.items, changed)
        )
        assert (true == true[0]).all()
        assert (false == false[0]).all()
        advantage += not np.array_equal(true[0], false[0])
    (row,) = rows(system="tiny-dipsgnn", target="recommendations", world="removed", epsilon=5.0)
    assert row["advantage"] == advantage / row["targets"]
    assert advantage > 0


@pytest.mark.parametrize("system", ["tiny-dipsgnn-rigorous", "tiny-edgerand"])
def test_each_inference_has_noise_of_its_own(system: str, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal sequences get different lists on different occasions, and in no comparison is an occasion used twice."""
    attack = attack_of(params)
    model, trials = attack.model(trained(system)), attack.options.trials
    items = np.array([1, 2, 3, 4], np.int32)
    first, again, other = (
        recommended_lists(model, 0, items, attack.options, order(model), start)[:, -1] for start in (0, 0, trials)
    )
    assert np.array_equal(first, again)
    assert len(np.unique(np.concatenate([first, other]), axis=0)) > trials
    asked: list[np.ndarray] = []
    score = DIPSGNN.score_again

    def counted(self, sequences, draws):
        asked.append(draws)
        return score(self, sequences, draws)

    monkeypatch.setattr(DIPSGNN, "score_again", counted)
    monkeypatch.setattr(edge_worlds, "WORLDS", {"removed": edge_worlds.remove_visit})
    released = released_model(model, attack.options, order(model), tiny_next.EPOCHS)
    list(edge_worlds.attack(released, attack.targets, attack.trials))
    drawn = np.concatenate(asked)
    assert len(drawn) == len(np.unique(drawn)) == 2 * attack.options.targets * trials


def test_targets_are_interior_events_of_tested_users_who_trained(params: Params) -> None:
    control = params.experiments["tiny-nonp"]
    attack = attack_of(params, targets=1000)
    tested = read_inputs(control, params, control.config).sequences("test")
    lists = [tested.items[a:b].tolist() for a, b in itertools.pairwise(tested.indptr)]
    sequences = dict(zip(tested.users.tolist(), lists, strict=True))
    targets = attack.targets
    assert {target.user for target in targets} == {user for user, items in sequences.items() if len(items) >= 4}
    for target in targets:
        assert target.items.tolist() == sequences[target.user]
        assert 1 <= target.position <= len(target.items) - 3  # neither it nor the next event is the last
    positions = {len(target.items) - target.position for target in targets}
    assert min(positions) == 3
    assert max(positions) > 5

    def named(seed: int) -> list[tuple[int, int]]:
        return [(target.user, target.position) for target in attack_of(params, seed=seed).targets]

    assert named(7) == named(7)
    assert named(7) != named(8)
    assert len({user for user, _ in named(7)}) == 6


def test_a_world_in_which_no_target_differs_is_left_out() -> None:
    """It ended a finished training in a mean of nothing."""
    target = edge_worlds.Target(0, np.array([1, 2, 2, 3], np.int32), 1)
    rows = edge_worlds.attack_controls([target], np.arange(6), 2, edge_worlds.Trials(trials=16, seed=0))
    assert {row["world"] for _, row in rows} == {"removed", "last"}


def test_a_user_who_never_trained_is_no_target(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    control = params.experiments["tiny-nonp"]
    users = {target.user for target in attack_of(params, targets=1000).targets}
    stranger = min(users)
    inputs = read_inputs(control, params, control.config)
    without = inputs.interactions.filter((pl.col("user") != stranger) | (pl.col("split") != "train"))
    monkeypatch.setattr(
        attack_edges, "read_inputs", lambda *_: type(inputs)(inputs.schema, without, inputs.processed, inputs.processed)
    )
    assert {target.user for target in attack_of(params, targets=1000).targets} == users - {stranger}
    short = inputs.interactions.filter(pl.col("split") != "test")
    monkeypatch.setattr(
        attack_edges, "read_inputs", lambda *_: type(inputs)(inputs.schema, short, inputs.processed, inputs.processed)
    )
    with pytest.raises(DataError, match="no tested sequence of 4 events or more, of a user who trained"):
        _ = attack_of(params).targets


def test_a_system_without_a_graph_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = tiny_next.changes()["experiments"]["tiny-nonp"]
    counts = {"model": "popularity", "config": {}}
    attack = tiny_next.ATTACK | {"systems": ["tiny-counts"], "control": "tiny-counts"}
    tiny_next.build(tmp_path, experiments={"tiny-counts": common | counts}, attack=attack)
    monkeypatch.chdir(tmp_path)
    train.main("tiny-counts")
    tiny_embeddings.passed(tmp_path, "tiny-counts")
    with pytest.raises(ConfigurationError, match="attack: tiny-counts aggregates no graph"):
        attack_edges.main("tiny")
    assert not OUT.exists()


@pytest.mark.parametrize(
    ("systems", "control", "message"),
    [
        (["tiny-nonp"], "tiny-nonp", r"attack\.systems: tiny-nonp has no noise"),
        (["tiny-edgerand"], "tiny-edgerand", r"attack\.control: tiny-edgerand has noise"),
    ],
)
def test_noise_belongs_to_systems_and_not_to_the_control(
    systems: list[str], control: str, message: str, params: Params
) -> None:
    attack = attack_of(params, systems=systems, control=control)
    with pytest.raises(ConfigurationError, match=message):
        list(map(attack.model, (unit.target for unit in attack.plan())))
