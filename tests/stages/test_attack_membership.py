"""Stage `attack-membership`: known truths on trained systems, what is kept, and a broken guarantee that ends it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from tasks.attacks import shadows
from tasks.config.params import load
from tasks.config.references import check_references
from tasks.core import device
from tasks.core.errors import PrivacyError
from tasks.models.ranking.ease import EASE
from tasks.models.ranking.many import fit_many
from tasks.pipeline.common import PROCESSED, RUNS, read_json
from tasks.stages import attack_membership, attacks, perturb
from tasks.stages.attack_membership import accounted
from tests.results.made import entry
from tests.stages import tiny

N_ITEMS = 80
OUT = RUNS / "tiny" / "membership"
EXPERIMENTS = {
    "tiny-ease": tiny.experiment("ease", {"regularization": 5.0}, seeds=[0]),
    "tiny-counts": tiny.experiment("dp-popularity", {"epsilon": 0.5, "contribution": 4}, seeds=[0]),
}
ATTACK = {
    "kind": "membership",
    "systems": ["tiny-ease", "tiny-counts"],
    "shadows": 15,
    "fewer": {"tiny-counts": 6},
    "asked": 4,
    "k": 10,
    "seed": 1,
}


def build(root: Path, **changes: Any) -> None:
    """Users with a taste for some items each; everything is training data."""
    tiny.build(root, **({"experiments": EXPERIMENTS, "suites": tiny.suites(), "attack": ATTACK} | changes))
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in range(tiny.N_USERS) for item in rng.choice(N_ITEMS, 15, replace=False)]
    users, items = zip(*sorted(pairs), strict=True)
    rows = tiny.interactions(users, items, ["train"] * len(users))
    tiny.write_interactions(rows, root / PROCESSED / "tiny", n_items=N_ITEMS)


@pytest.mark.usefixtures("fresh")
def test_ease_is_found_out_and_private_counts_are_not() -> None:
    check_references(load())
    attack_membership.main("tiny")
    table = pl.read_parquet(OUT / "membership.parquet", schema=shadows.COLUMNS)
    rows = {(row["system"], row["target"], row["seen"], row["attack"]): row for row in table.iter_rows(named=True)}
    assert len(rows) == 2 * 2 * (2 * 3 + 3)
    assert rows["tiny-ease", "interaction", "scores", "lira-online"]["auc_low"] > 0.7
    assert rows["tiny-ease", "user", "scores", "lira-online"]["auc_low"] > 0.7
    assert rows["tiny-ease", "user", "scores", "lira-online"]["epsilon"] is None
    counts = rows["tiny-counts", "interaction", "scores", "lira-online"]
    assert counts["auc_low"] < 0.55
    assert (counts["epsilon"], counts["delta"], counts["shadows"]) == (1.0, 0.0, 6)
    assert rows["tiny-counts", "user", "lists", "rmia"]["epsilon"] == 0.5
    assert counts["allowed"] == pytest.approx(shadows.allowed_tpr(1.0, 0.0, 0.01))
    assert read_json(OUT / "inputs.json")["synthetic"]
    units = attack_membership.work("tiny").units
    assert [unit.label for unit in units] == [
        *("tiny-ease-0-4", "tiny-ease-5-9", "tiny-ease-10-14", "tiny-ease-15-15"),
        *("tiny-counts-0-4", "tiny-counts-5-6"),
    ]


def test_the_first_system_may_read_perturbed_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = {"tiny-ease": EXPERIMENTS["tiny-ease"] | {"features": "perturbed/tiny"}}
    build(tmp_path, experiments=private, attack=ATTACK | {"systems": ["tiny-ease"], "shadows": 4, "fewer": {}})
    monkeypatch.chdir(tmp_path)
    perturb.main("tiny")
    monkeypatch.setattr(attacks, "require_passed", lambda *_: {})
    attack_membership.main("tiny")
    assert read_json(OUT / "inputs.json")["synthetic"]


@pytest.mark.usefixtures("fresh")
def test_shadow_models_stay_where_they_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = []

    def fit(*arguments: Any) -> Any:
        devices.append(device.chosen())
        return fit_many(*arguments)

    monkeypatch.setenv(device.VARIABLE, "cuda")
    monkeypatch.setattr(attack_membership, "fit_many", fit)
    attack_membership.main("tiny")
    assert set(devices) == {torch.device("cpu")}


@pytest.mark.usefixtures("fresh")
def test_a_system_that_finds_out_more_than_its_ledger_allows_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    lie = entry(0.5)
    monkeypatch.setattr(EASE, "ledger", lambda _: [lie])
    with pytest.raises(PrivacyError, match=r"tiny-ease: accounted at epsilon (0\.5|1) .* finds more than that allows"):
        attack_membership.main("tiny")
    assert (OUT / "membership.parquet").exists()  # to be looked at


def test_what_is_accounted_of_users_bounds_interactions_in_two_steps_and_not_the_reverse() -> None:
    assert accounted([entry(0.5)]) == {"user": (0.5, 0.0), "interaction": (1.0, 0.0)}
    of_cells = entry(0.4, "interaction")
    assert accounted([of_cells]) == {"interaction": (0.4, 0.0)}
    assert accounted([of_cells.model_copy(update={"accounted_epsilon": None})]) == {}


def test_all_releases_together_bound_what_is_found_and_one_without_a_bound_leaves_none() -> None:
    """The last entry alone stood for all: an attack on the others was held to too little."""
    of_users, of_cells = entry(0.5), entry(0.4, "interaction")
    assert accounted([of_users, of_cells]) == {"interaction": (pytest.approx(1.4), 0.0)}
    assert accounted([of_cells, of_users]) == {"interaction": (pytest.approx(1.4), 0.0)}
    same = of_cells.model_copy(update={"events": of_users.events})
    assert accounted([same, of_users])["interaction"] == (0.5, 0.0)  # one release, for both units
    unbounded = of_users.model_copy(update={"accounted_epsilon": None})
    assert accounted([unbounded, of_cells]) == accounted([of_cells, unbounded]) == {}
