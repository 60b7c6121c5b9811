"""A workspace of one tiny data set for stage tests: params.yaml, and processed data that passed their check."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from tasks.config.params import load
from tasks.config.references import check_references
from tasks.core import contracts
from tasks.core.contracts import Feature, Schema
from tasks.core.hashing import Uniforms
from tasks.evaluation.ranking import ranking_table
from tasks.pipeline.common import PROCESSED, QUALITY, REFERENCE, write_json
from tasks.stages.inputs import Inputs
from tests import parameters as parameters_

N_USERS = 300
FEATURES = (
    Feature(name="share", kind="numeric", low=0, high=1),
    Feature(name="count", kind="numeric", low=3, high=90, bounds="fitted"),
    Feature(name="colour", kind="categorical", categories=("red", "green", "blue"), sensitive=True),
)
SCHEMA = Schema(dataset="tiny", protocol="gerai", synthetic=True, n_users=N_USERS, n_items=10, features=FEATURES)


ENTRY = ("title", "paper", "data", "task")
"""What every suite says for itself."""


def parameters(**changes: Any) -> dict[str, Any]:
    """The project's parameters with its data, suites and experiments replaced by tiny ones, and `changes`.

    What stands in a suite's own file is the same for all of them, so it is given once, the entries of all
    together: their key `suite` says whose they are.
    """
    raw = parameters_.read("demo")
    raw |= {key: value for key, value in raw["suites"]["demo"].items() if key in parameters_.OWN and key not in ENTRY}
    raw |= {key: {} for key in parameters_.OF_ENTRIES}
    entry = {"paper": None, "data": "tiny", "task": "top-k"}
    processed = next(iter(raw["processed"].values())) | {"dataset": "tiny"}
    raw |= {
        "datasets": {"tiny": next(iter(raw["datasets"].values()))},
        "processed": {"tiny": processed},
        "perturbed": {
            "tiny": {"data": "tiny", "mechanism": "multidimensional", "epsilon": [1.0, 7.5], "seeds": [0, 1]}
        },
        "words": {"tiny": {"data": "tiny", "vectors": "hashed", "dimension": 3, "seed": 5}},
        "suites": {"tiny": entry | {"title": "Tiny"}, "open": entry | {"title": "Nothing private"}},
        "experiments": {
            "tiny-counts": COUNTS,
            "tiny-features": experiment(
                "gcn", {}, system="gerai-nf", features="perturbed/tiny", sweep=[{"features_epsilon": 7.5}]
            ),
            "open-popularity": experiment("popularity", {}, suite="open"),
        },
    }
    return raw | changes


def experiment(model: str, config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Of the tiny suite, under two seeds."""
    about = {"suite": "tiny", "data": "tiny", "features": "processed/tiny", "seeds": [0, 1], "sweep": []}
    return about | {"model": model, "config": config} | changes


COUNTS = experiment("dp-popularity", {"epsilon": 2.0, "contribution": 3})


def write_parameters(raw: dict[str, Any], root: Path) -> None:
    """Write such parameters to the files of the root and of every suite."""
    shared = {key: raw.pop(key) for key in parameters_.OWN if key in raw and key not in ENTRY}
    suites = {}
    for name, suite in raw["suites"].items():
        own = {
            section: {
                key: {of: value for of, value in entry.items() if of != "suite"}
                for key, entry in shared[section].items()
                if entry["suite"] == name
            }
            for section in parameters_.OF_ENTRIES
        }
        suites[name] = shared | suite | own
    parameters_.write(raw | {"suites": suites}, root)


def run(stage: Callable[[str], None], name: str) -> None:
    """Run a stage in the current folder as `dprec run` does: after the parameters' references were checked."""
    check_references(load())
    stage(name)


def write_schema(folder: Path, schema: Schema) -> None:
    """The schema, and published ids that are the dense ones."""
    write_json(folder / "schema.json", schema.model_dump(mode="json"))
    for name, n in (("user_ids", schema.n_users), ("item_ids", schema.n_items)):
        ids = pl.DataFrame({"id": np.arange(n, dtype=np.int32), "original": [str(number) for number in range(n)]})
        contracts.write(ids, folder / f"{name}.parquet", contracts.ID_MAP)


def suites(task: str = "top-k", paper: str | None = None, name: str = "tiny") -> dict[str, Any]:
    """One suite alone."""
    return {name: {"title": "Tiny", "paper": paper, "data": "tiny", "task": task}}


def interactions(users: ArrayLike, items: ArrayLike, splits: ArrayLike, rating: float = 4.0) -> pl.DataFrame:
    ids = {"user": np.asarray(users, np.int32), "item": np.asarray(items, np.int32)}
    table = pl.DataFrame(ids | {"timestamp": np.arange(len(ids["user"])), "split": np.asarray(splits)})
    return table.with_columns(rating=pl.lit(rating, pl.Float32)).select(contracts.INTERACTIONS.names)


def write_interactions(rows: pl.DataFrame, folder: Path = PROCESSED / "tiny", **schema: Any) -> None:
    """Interactions of the tiny users, and changes of the schema."""
    write_schema(folder, SCHEMA.model_copy(update=schema))
    contracts.write(rows, folder / "interactions.parquet", contracts.INTERACTIONS)


def write_lists(items: NDArray[Any], folder: Path, seed: int) -> None:
    """Recommendations without scores, (n_users, K), of a seed."""
    users = np.arange(len(items), dtype=np.int32)
    table = ranking_table(items.astype(np.int32), np.zeros(items.shape, np.float32), user=users)
    folder.mkdir(parents=True, exist_ok=True)
    contracts.write(table, folder / f"seed-{seed}.parquet", contracts.RECOMMENDATIONS)


def write_source(root: Path, *steps: dict[str, Any]) -> None:
    """What `collect` and `report` read of the data, of which so much is left after each step, and of papers."""
    folder, reference = root / PROCESSED / "tiny", root / REFERENCE / "paper_tables.csv"
    write_json(folder / "source.json", {"dataset": "tiny", "address": "made up", "licence": "none", "synthetic": True})
    write_json(folder / "counts.json", [{"numbers": {}} | step for step in steps])
    reference.parent.mkdir(parents=True)
    shutil.copy(parameters_.ROOT / REFERENCE / "paper_tables.csv", reference)


class Untrained:
    """What a model that tests make up does not do."""

    def fit(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    released = restore_released = fit


class Numbered(Inputs):
    """Inputs without files, whose published ids are the dense ones."""

    def draws(self, seed: int) -> Uniforms:
        return Uniforms.of(seed, range(self.schema.n_users), range(self.schema.n_items))


def passed(layer: str, name: str, root: Path = Path(), *, success: bool = True, **more: Any) -> None:
    """Write a verdict; by default it holds whatever the files are."""
    verdict = {"contract": layer, "name": name, "success": success, "evaluated": 9, "failed": int(not success)}
    (root / QUALITY / layer).mkdir(parents=True, exist_ok=True)
    write_json(root / QUALITY / layer / f"{name}.json", verdict | {"checked": {}} | more)


def build(root: Path, **changes: Any) -> None:
    write_parameters(parameters(**changes), root)
    processed = root / PROCESSED / "tiny"
    processed.mkdir(parents=True)
    rng = np.random.default_rng(0)
    users = pl.DataFrame(
        {
            "user": np.arange(N_USERS, dtype=np.int32),
            "share": rng.random(N_USERS, dtype=np.float32),
            "count": rng.integers(3, 91, N_USERS).astype(np.float32),
            "colour": rng.choice(["red", "green", "blue"], N_USERS),
        }
    )
    contracts.write(users, processed / "users.parquet", contracts.users_schema(FEATURES))
    write_schema(processed, SCHEMA)
    passed("processed", "tiny", root)
