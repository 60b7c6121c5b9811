"""Stage `perturb`: a release per budget and seed, whole or not at all, with a ledger that names its gaps."""

from contextlib import chdir
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.pipeline.common import PERTURBED, PROCESSED, QUALITY, read_json
from tasks.privacy.accounting import gaps
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import multidimensional
from tasks.privacy.noise import generator
from tasks.privacy.remarks import gap
from tasks.stages import perturb
from tests.stages import tiny
from tests.systems import ids

pytestmark = pytest.mark.usefixtures("fresh")
OUT = PERTURBED / "tiny"


def release(epsilon: str, seed: int) -> pl.DataFrame:
    path = OUT / f"epsilon={epsilon}" / f"seed-{seed}.parquet"
    return contracts.read(path, contracts.features_schema(tiny.SCHEMA.columns))


def test_every_budget_and_seed_is_released_under_the_contract() -> None:
    perturb.main("tiny")
    files = sorted(path.relative_to(OUT).as_posix() for path in OUT.rglob("*") if path.is_file())
    releases = [f"epsilon={epsilon}/seed-{seed}.parquet" for epsilon in ("1", "7.5") for seed in (0, 1)]
    assert files == sorted([*releases, "ledger.json", "schema.json"])
    assert contracts.read_schema(OUT / "schema.json") == tiny.SCHEMA
    for epsilon, sampled in (("1", 1), ("7.5", 3)):
        table = release(epsilon, 0)
        assert table["user"].to_list() == list(range(tiny.N_USERS))
        reported = (table.select("share", "count").to_numpy() != 0).sum(axis=1)
        assert reported.max() == min(sampled, 2)
        assert table.select("share").to_numpy().max() <= multidimensional.bound(float(epsilon), 3) * (1 + 1e-6)


def test_releases_share_no_noise_and_do_not_depend_on_what_else_is_listed(tmp_path: Path) -> None:
    """Two budgets under one seed with the same noise would give the features away by their difference."""
    first, second = generator(0, 1.0).random(1000), generator(0, 7.5).random(1000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(1000)
    perturb.main("tiny")
    before = release("7.5", 1)
    changed = tiny.parameters()["perturbed"]["tiny"] | {"epsilon": [7.5], "seeds": [1]}
    tiny.build(tmp_path / "other", perturbed={"tiny": changed}, experiments={})
    with chdir(tmp_path / "other"):
        perturb.main("tiny")
        assert release("7.5", 1).equals(before)


def test_two_entries_of_one_data_set_share_no_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal budgets and seeds: else one release would be the other, whatever the parameters say of their cost."""
    entry = tiny.parameters()["perturbed"]["tiny"]
    tiny.build(tmp_path / "other", perturbed={"tiny": entry, "again": entry})
    monkeypatch.chdir(tmp_path / "other")
    for name in ("tiny", "again"):
        perturb.main(name)
    paths = [path.relative_to(OUT) for path in OUT.rglob("*.parquet")]
    assert len(paths) == 4
    for path in paths:
        first, second = (pl.read_parquet(place / path).drop("user").to_numpy() for place in (OUT, PERTURBED / "again"))
        assert ((first != 0) != (second != 0)).any()


def test_two_versions_of_one_data_set_share_no_noise() -> None:
    """With one noise, exactly the rows of users who changed would differ."""
    perturb.main("tiny")
    before = release("7.5", 1)
    path, form = PROCESSED / "tiny" / "users.parquet", contracts.users_schema(tiny.FEATURES)
    users = contracts.read(path, form)
    other = pl.when(pl.col("user") == 7).then(1 - pl.col("share")).otherwise(pl.col("share"))
    contracts.write(users.with_columns(share=other.cast(pl.Float32)), path, form)
    perturb.main("tiny")
    moved = (before.drop("user").to_numpy() != release("7.5", 1).drop("user").to_numpy()).any(axis=1)
    assert moved.sum() > tiny.N_USERS / 2


def test_secure_features_follow_from_no_seed_and_their_ledger_says_so(tmp_path: Path) -> None:
    entry = tiny.parameters()["perturbed"]["tiny"] | {"noise": "secure"}
    tiny.build(tmp_path / "other", perturbed={"tiny": entry}, experiments={})
    with chdir(tmp_path / "other"):
        tables = []
        for _ in range(2):
            perturb.main("tiny")
            tables.append(release("7.5", 1).drop("user").to_numpy())
        entries = [{key: record[key] for key in record if key not in ("epsilon", "seed")}
                   for record in read_json(OUT / "ledger.json")]  # fmt: skip
    assert ((tables[0] != 0) != (tables[1] != 0)).any()
    for entry in map(LedgerEntry.model_validate, entries):
        assert entry.noise == "secure"
        assert {"secure", "snapped"} <= ids(entry.gaps)
        assert not {gaps.SEED_OF_RELEASE, gaps.ROUNDED} & set(entry.gaps)


def test_ledger_has_two_entries_per_release_with_fitted_bounds_and_names_their_columns() -> None:
    perturb.main("tiny")
    records = read_json(OUT / "ledger.json")
    which = [(1, 0), (1, 0), (1, 1), (1, 1), (7.5, 0), (7.5, 0), (7.5, 1), (7.5, 1)]
    assert [(record.pop("epsilon"), record.pop("seed")) for record in records] == which
    entries = [LedgerEntry.model_validate(record) for record in records]
    assert [entry.claimed_epsilon for entry in entries] == [epsilon for epsilon, _ in which]
    assert [entry.accounted_epsilon for entry in entries[::2]] == [None] * 4
    assert [entry.accounted_epsilon for entry in entries[1::2]] == pytest.approx([1, 1, 7.5, 7.5])
    for entry in entries:
        assert entry.protects == "feature"
        assert {gap("fitted-ranges", columns="count"), gap("side-by-side", n_releases=4)} <= set(entry.gaps)


def test_nothing_is_perturbed_before_the_data_passed_their_check() -> None:
    tiny.passed("processed", "tiny", success=False)
    with pytest.raises(DataError, match="failed their check"):
        perturb.main("tiny")
    (QUALITY / "processed" / "tiny.json").unlink()
    with pytest.raises(DataError, match="not found"):
        perturb.main("tiny")
    assert not PERTURBED.exists()
