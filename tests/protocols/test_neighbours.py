"""One raw record less, or one user, changes nothing of other users, and the order of records nothing at all.

Catalogue, minimum counts and vocabulary, which do depend on all users, are conditions of a guarantee. Here the records
that are taken away change neither the first two nor, but for the order of its ids, the third.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from tasks.audits import Samples, auditor, sgd, sums
from tasks.audits.verdicts import lower_bound
from tasks.core.contracts import SPLITS, Feature, RatingScale
from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpals import distinct_cells
from tasks.models.ranking.popularity import PrivatePopularity, PrivatePopularityConfig
from tasks.papers.dipsgnn import protocol as dipsgnn
from tasks.papers.dpcrosue import protocol as dpcrosue
from tasks.papers.dpvae import protocol as dpvae
from tasks.papers.gerai import protocol as gerai
from tasks.papers.multvae import protocol as multvae
from tasks.papers.privsr import protocol as privsr
from tasks.papers.protocol import Prepared
from tasks.privacy.audits.audit import audit
from tasks.privacy.controls import scaled
from tests.protocols.tables import INTERACTIONS, assert_same, shuffled, stored

N_USERS, N_ITEMS = 60, 25
RUNS, FITS, OWN = 300, 50, 5
"""Of DPALS in either world, and of DPAE; items of each of its users."""
SPLIT = {"split_seed": 3, "valid_share": 0.1}
PROTOCOLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gerai": (gerai, SPLIT | {"test_share": 0.2}),
    "gerai, last": (gerai, SPLIT | {"test_share": 0.2, "split": "last", "user_core": 3, "item_core": 4}),
    "dipsgnn": (dipsgnn, SPLIT | {"keep": {}, "core": 5, "last": 40, "train_share": 0.9, "tie_seed": 4}),
    "dpvae": (
        dpvae,
        SPLIT | {"keep": {}, "sample": 0.8, "omega": 0.1, "delta": 0.1, "d": 0.1, "p_min": 0.1, "test_share": 0.1}
        | {"omit": ("users", "items")},
    ),
    "multvae": (multvae, {"keep": {}, "min_items": 5, "held_out": 0.2, "target_share": 0.2, "split_seed": 3}),
    "privsr": (privsr, SPLIT | {"keep": {}, "min_item_raters": 3, "min_user_ratings": 2, "folds": 5}),
    "dpcrosue": (dpcrosue, {"tokenizer": "words", "min_count": 1, "max_vocabulary": None}),
}  # fmt: skip
COUNTED = ("catalogue", "minimum-counts")
CONDITIONS: dict[str, tuple[str, ...]] = {
    "dipsgnn": (*COUNTED, "no-repeats"),
    "dpvae": COUNTED,
    "privsr": COUNTED,
    "dpcrosue": (),
    "gerai, last": COUNTED,
}
USERS = {"interactions": ("user",), "users": ("user",), "social": ("source", "target"), "posts": ("user",)}


def raw_tables() -> dict[str, pl.DataFrame]:
    """Ratings, some of them repeated and many at the same time, who trusts whom, and what users wrote."""
    rng, n = np.random.default_rng(0), 2000
    users, items = rng.integers(0, N_USERS, n), rng.integers(0, N_ITEMS, n)
    rows = [10 + 7 * users, 1000 - items, rng.integers(1, 6, n).astype(np.float32), rng.integers(0, 5, n)]
    people = 10 + 7 * np.arange(N_USERS)
    friends = pl.DataFrame({"source": rng.choice(people, 200), "target": rng.choice(people, 200)})
    texts = [" ".join(rng.choice(["film", "good", "not", "bad"], 5)) for _ in range(300)]
    return {
        "interactions": pl.DataFrame(dict(zip(INTERACTIONS, rows, strict=True)), INTERACTIONS),
        "users": pl.DataFrame({"user": people, "age": rng.integers(18, 60, N_USERS)}),
        "social": friends.with_columns(relation=pl.lit("trust")),
        "posts": pl.DataFrame({"user": rng.choice(people, 300), "text": texts}),
    }


def without_user(tables: dict[str, pl.DataFrame], user: int) -> dict[str, pl.DataFrame]:
    return {name: rows.filter(pl.all_horizontal(pl.col(USERS[name]) != user)) for name, rows in tables.items()}


def prepare(folder: Path, protocol: str, tables: dict[str, pl.DataFrame]) -> Prepared:
    module, options = PROTOCOLS[protocol]
    kept = {name: rows for name, rows in tables.items() if (name == "posts") <= (protocol == "dpcrosue")}
    age = Feature(name="age", kind="numeric", low=18, high=60)
    raw = stored(folder, kept, features=(age,), scale=RatingScale(low=1, high=5, step=1), time="seconds")
    result: Prepared = module.prepare(raw, module.Options.model_validate(options))
    return result


def of_others(prepared: Prepared, user: int) -> dict[str, pl.DataFrame]:
    """All rows that do not name this user, with published ids, in their order within each user."""
    ids = {"user": prepared.tables["user_ids"], "item": prepared.tables.get("item_ids")}
    words = prepared.tables.get("vocabulary")
    named = {"user": "user", "source": "user", "target": "user", "item": "item"}
    result = {}
    for name, rows in prepared.tables.items():
        for column in set(named) & set(rows.columns):
            originals = ids[named[column]]["original"].to_numpy()
            rows = rows.with_columns(pl.Series(column, originals[rows[column].to_numpy()], pl.String))
        if name == "posts":
            rows = rows.with_columns(
                pl.col("tokens").list.eval(pl.element().replace_strict(words["id"], words["word"]))
            )
        if people := [column for column in USERS.get(name, ("user",)) if column in rows.columns]:
            others = rows.filter(pl.all_horizontal(pl.col(people) != str(user)))
            result[name] = others.sort(people, maintain_order=True)
    assert len(result) >= 2
    return result


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_records_means_nothing(tmp_path: Path, protocol: str, seed: int) -> None:
    expected = prepare(tmp_path / "one", protocol, raw_tables())
    assert_same(prepare(tmp_path / "other", protocol, shuffled(raw_tables(), seed)), expected)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("user", [10 + 7 * 3, 10 + 7 * 40])
def test_other_users_rows_stay_as_they_are(tmp_path: Path, protocol: str, user: int) -> None:
    tables = raw_tables()
    complete = prepare(tmp_path / "all", protocol, tables)
    assert complete.conditions == CONDITIONS.get(protocol, ("catalogue",))
    expected = of_others(complete, user)
    fewer = {name: rows.filter((pl.col("user") != user) | (pl.int_range(pl.len()) % 7 > 0).over("user"))
             for name, rows in tables.items() if name in ("interactions", "posts")}  # fmt: skip
    for name, changed in (("records", tables | fewer), ("user", without_user(tables, user))):
        actual = of_others(prepare(tmp_path / name, protocol, changed), user)
        assert list(actual) == list(expected)
        assert [table for table, rows in actual.items() if not rows.equals(expected[table])] == []
    parts = expected.get("interactions", pl.DataFrame({"split": SPLITS}))["split"]
    assert set(parts) == set(SPLITS)


@pytest.mark.parametrize("lost", [pl.col("user") == 10 + 7 * 3, pl.col("item") == 1], ids=["user", "rating"])
@pytest.mark.parametrize("protocol", ["gerai", "dpvae"])
def test_of_listed_users_and_items_nothing_depends_on_who_and_what_occurs(
    tmp_path: Path, protocol: str, lost: pl.Expr
) -> None:
    """All rows of a user are gone, who alone had an item, or that one: ids stay, and no ε is conditional on them."""
    user, alone, tables = 10 + 7 * 3, 1, raw_tables()
    tables["interactions"] = tables["interactions"].vstack(pl.DataFrame([[user], [alone], [5.0], [2]], INTERACTIONS))
    tables["items"] = pl.DataFrame({"item": [alone, *(1000 - np.arange(N_ITEMS + 3))]})
    fewer = tables | {"interactions": tables["interactions"].filter(~lost)}
    module, options = PROTOCOLS[protocol]
    chosen = options | {"listed": True} | ({"omit": ("users",), "sample": None} if protocol == "dpvae" else {})
    made = []
    for name, raw in (("all", tables), ("fewer", fewer)):
        schema = {"scale": RatingScale(low=1, high=5, step=1), "time": "seconds"}
        stored_raw = stored(tmp_path / name, {key: raw[key] for key in ("interactions", "users", "items")}, **schema)
        made.append(module.prepare(stored_raw, module.Options.model_validate(chosen)))
    assert [(each.n_users, each.n_items, each.conditions) for each in made] == [(N_USERS, N_ITEMS + 4, ())] * 2
    assert [each.counts[0].items for each in made] == [N_ITEMS + 1, N_ITEMS], "those that occur are counted"
    everyone, less = (each.tables for each in made)
    for name in ("user_ids", "item_ids"):
        assert everyone[name].equals(less[name])
    assert of_others(made[0], user)["interactions"].equals(of_others(made[1], user)["interactions"])
    assert [0 in each["interactions"]["item"] for each in (everyone, less)] == [True, False]


def training_data(prepared: Prepared) -> TrainingData:
    rows = prepared.tables["interactions"].filter(pl.col("split") == "train").sort("user", "item")
    return TrainingData(prepared.n_users, prepared.n_items, *(rows[name].to_numpy() for name in ("user", "item")))


@pytest.mark.parametrize("protocol", ["gerai", "dpvae"])
def test_an_audit_that_starts_from_raw_tables_stays_below_what_dp_popularity_accounts(
    tmp_path: Path, protocol: str
) -> None:
    """With splits of one stream for all users, one raw user less moved hundreds of counts, and more was proved."""
    user, tables = 10 + 7 * 3, raw_tables()
    data = [
        training_data(prepare(tmp_path / name, protocol, raw))
        for name, raw in (("without", without_user(tables, user)), ("all", tables))
    ]
    counts = [np.bincount(each.items, minlength=each.n_items) for each in data]
    moved = counts[1] - counts[0]
    assert 3 < moved.sum() == np.abs(moved).sum() <= N_ITEMS
    most = int(np.bincount(data[1].users).max())
    model = PrivatePopularity(PrivatePopularityConfig(epsilon=1.0, contribution=most))
    rng = np.random.default_rng(0)
    sides = [
        np.array([float(model.fit(each, rng=rng).released()["counts"].numpy() @ np.sign(moved)) for _ in range(3000)])
        for each in data
    ]
    assert audit(*sides, 0.99).epsilon <= 1.0


def assert_as_strong(samples: Samples, shipped: Samples, less_noise: Samples) -> None:
    """As much is proved as of training data, up to chance, and no more than accounted; half of the noise is noticed."""
    proved, expected, control = (lower_bound(each).epsilon for each in (samples, shipped, less_noise))
    accounted = samples.entry.accounted_epsilon
    assert accounted == shipped.entry.accounted_epsilon
    assert 0.9 * expected <= proved <= accounted < control


@pytest.mark.slow
def test_an_audit_of_dpals_that_starts_from_raw_tables_proves_as_much_as_that_of_training_data(tmp_path: Path) -> None:
    user, tables = 10 + 7 * 3, raw_tables()
    data = [
        training_data(prepare(tmp_path / name, "gerai", raw))
        for name, raw in (("without", without_user(tables, user)), ("all", tables))
    ]
    samples = sums.dpals_between(*data, 1, RUNS)
    with scaled(0.5):
        control = sums.dpals_between(*data, 1, RUNS)
    assert_as_strong(samples, auditor("dpals")(1, RUNS), control)


@pytest.mark.slow
def test_an_audit_of_dpae_that_starts_from_raw_tables_proves_as_much_as_that_of_training_data(tmp_path: Path) -> None:
    """Users with items of their own, and one with all items, so that no item leaves the catalogue."""
    n_items, people = sgd.USERS * OWN, 1000 + np.arange(sgd.USERS + 1)
    users = np.append(people[:-1].repeat(OWN), np.full(n_items, people[-1]))
    rows = pl.DataFrame({"user": users, "item": np.tile(np.arange(n_items), 2), "rating": 5.0, "timestamp": 0})
    tables = {"interactions": rows.cast(INTERACTIONS), "users": pl.DataFrame({"user": people, "age": 18})}  # type: ignore[arg-type]

    def world(present: sgd.Present) -> TrainingData:
        absent = people[:-1][~present].tolist()
        kept = {name: table.filter(~pl.col("user").is_in(absent)) for name, table in tables.items()}
        return training_data(prepare(tmp_path / str(len(list(tmp_path.iterdir()))), "gerai", kept))

    complete = distinct_cells(world(np.ones(sgd.USERS, np.bool_)))
    more = {"world": world, "rows": torch.from_numpy(complete.toarray()).float(), "batch_size": 2 * sgd.USERS}
    samples = sgd.autoencoder(1, FITS * sgd.USERS // 2, **more)
    with scaled(0.5):
        control = sgd.autoencoder(1, FITS * sgd.USERS // 2, **more)
    assert_as_strong(samples, auditor("dpae")(1, FITS * sgd.USERS // 2), control)
