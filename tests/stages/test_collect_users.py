"""What is collected of users: distributions over them, from released lists and held-out items."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks import contracts
from tasks.config import params
from tasks.evaluation.metrics import measure
from tasks.evaluation.pairs import BY_USER, by_user
from tasks.evaluation.ranking import Seen, full_values
from tasks.stages import collect_parts
from tests.stages import tiny

ROOT = Path(__file__).resolve().parents[2]
N_USERS, N_ITEMS, K = 40, 30, 10


@dataclass(frozen=True)
class Made:
    """Lists of two systems of the demo: one that puts every held-out item first, and one that shows item 0 first."""

    records: pl.DataFrame

    def bins(self, experiment: str, metric: str) -> list[tuple[float, float, int]]:
        """Bounds and users of every bin."""
        return self.records.filter(experiment=experiment, metric=metric).select("low", "high", "users").rows()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("users")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        loaded = params.load()
        patch.chdir(place)
        users = np.arange(N_USERS)
        held = users % (N_ITEMS - 1) + 1
        splits = np.repeat(["train", "test"], N_USERS)
        interactions = tiny.interactions(np.tile(users, 2), np.concatenate([0 * users, held]), splits)
        folder = Path("data/processed/demo")
        folder.mkdir(parents=True)
        contracts.write(interactions, folder / "interactions.parquet", contracts.INTERACTIONS)
        for name, first in (("demo-ease", held), ("demo-popularity", np.zeros(N_USERS, np.int32))):
            for seed in loaded.suites["demo"].experiments[name].seeds:
                _write(name, seed, first)
        records = collect_parts.collect_distributions("demo", loaded)["spreads"]
    return Made(records)


def _write(name: str, seed: int, first: np.ndarray) -> None:
    """Lists that begin with `first`, and go on with items that no one holds out: (N_USERS, K) as a table."""
    lists = np.empty((N_USERS, K), np.int32)
    for user, item in enumerate(first):
        rest = [other for other in range(N_ITEMS) if other not in (0, item, user % (N_ITEMS - 1) + 1)]
        lists[user] = [item, *rest[: K - 1]]
    tiny.write_lists(lists, Path("data/runs/demo") / name / "released/base", seed)
    users = np.arange(N_USERS)
    tested = measure("full", *full_values(lists, Seen.from_pairs(users, users % (N_ITEMS - 1) + 1, N_USERS), [K]))
    path = Path("data/runs/demo") / name / "train/users" / f"seed-{seed}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    contracts.write(by_user(tested), path, BY_USER)


def test_users_are_counted_by_what_their_lists_are_worth(made: Made) -> None:
    assert made.bins("demo-ease", "ndcg") == [(0.95, 1.0, N_USERS)]
    assert made.bins("demo-popularity", "ndcg") == [(0.0, 0.05, N_USERS)]
    assert set(made.records["k"]) == {K}


def test_exposure_is_of_training_data(made: Made) -> None:
    # Everyone has item 0 in the training data, and no one anything else: one item of ten, or none.
    assert made.bins("demo-popularity", "exposure") == [(0.1, 0.12, N_USERS)]
    assert made.bins("demo-ease", "exposure") == [(0.0, 0.02, N_USERS)]
