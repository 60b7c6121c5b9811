"""`dprec init`: what the parameters must say of a user's own files, written from what is in the files.

The data set and its protocol go into params.yaml, a suite of common systems and attacks into suites/NAME/. All of it
can be edited afterwards; docs/custom-data.md explains every key.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from flows import entries
from flows.execution import hold_project
from tasks.config import params
from tasks.config.fields import NAME
from tasks.core.errors import ConfigurationError
from tasks.external import reading
from tasks.external.findings import shown
from tasks.external.reading import Column, Given, Names, iso_seconds
from tasks.pipeline.provenance import git
from tasks.stages.data import scale_of, tables_of

LICENCE = "Own data, for use in this company only."
FIRST_ROWS = 10_000
"""Of the times, to see what they are; the first run checks all of them."""
MOST_CATEGORIES = 30
FEWEST_NUMBERS = 10
"""Different values from which whole numbers are taken for a quantity and not for names of classes."""
SECONDS, MILLISECONDS = (3e7, 1e10), (3e10, 1e13)
"""Times since 1970 from 1971 on."""
NUMBER = r"0o[0-7]+|[0-9]+e-?[0-9]+|0[0-9]*[89][0-9]*"
"""Names that DVC's version of YAML takes for numbers and ours for text, so that they are not quoted, as 2024 is."""
TEXT = Column("any", may_be_empty=True)
TEMPLATES = Path(__file__).parent / "templates"


def begin(
    name: str, ratings: Path, people: Path | None, names: Names, licence: str = LICENCE, *, wait: bool = False
) -> tuple[list[Path], list[str]]:
    """Write data set, protocol and suite for own files; which files, and what was taken for what, a sentence a file.

    Nothing is written if anything is wrong. What an earlier, killed call with the same files has left is completed.

    Args:
        people: what users are, or None.
        names: columns that are not recognised by usual names.
        wait: wait for another command that holds the project to end.

    Raises:
        ConfigurationError: the name is taken or no name, or this is no project; git would take a file, or its path
            cannot be used; no file has a column that is named.
        DataError: a file is missing, of another kind or malformed, or a column is missing or ambiguous.
        Busy: another command holds the project (and `wait` is false).
    """
    if not re.fullmatch(NAME, name):
        raise ConfigurationError(f"{name!r}: no name; it takes small letters, digits and hyphens")
    if re.fullmatch(NUMBER, name):
        raise ConfigurationError(f"{name!r}: DVC takes it for a number; choose another name")
    with hold_project(f"init {name}", wait=wait):
        folder = params.own_file(name).parent
        if folder.exists():
            raise ConfigurationError(f"{folder}: is there already; choose another name, or move it away")
        files = [path for path in (ratings, people) if path is not None]
        for path in files:
            _require_usable(path)
        for role, column in names.columns.items():  # one that is not there would silently be another, of a usual name
            among = files if role == "user" else [ratings]
            if not any(reading.named(path, column) for path in among):
                paths = " and ".join(map(str, among))
                raise ConfigurationError(f"{paths}: no column {column!r}; correct --{role}-column")
        dataset, interactions, notes = _dataset(ratings, people, names, licence)
        with tables_of(name, params.Dataset.model_validate(dataset)):
            pass  # what a run would refuse of these files is refused here
        # shares are the same for all data: a choice by the data would tell of them
        shares = {"split_seed": 2021, "test_share": 0.2, "valid_share": 0.1}
        options = {"split": "random", "user_core": 1, "item_core": 1} | shares
        added = {
            "datasets": {name: dataset},
            "processed": {name: {"dataset": name, "protocol": "gerai", "options": options}},
        }
        attacked = any(feature["sensitive"] for feature in dataset["read"].get("users", {}).get("features", ()))
        n_users, n_items = interactions.rows["user"].n_unique(), interactions.rows["item"].n_unique()
        written = entries.add(name, added, texts(name, n_users, n_items, attacked=attacked))
    return written, [shown(note) for note in notes]


def _require_usable(path: Path) -> None:
    """Refuse a path that params.yaml cannot hold, or a file that git would take, or may where it gives no answer."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"{path}: the path is not UTF-8, as params.yaml is; rename it") from None
    listing = ("--literal-pathspecs", "ls-files", "--cached", "--others", "--exclude-standard", "--")
    project, file = Path.cwd(), path.resolve()
    may_be = (project / ".git").exists() and file.is_relative_to(project) and not file.is_relative_to(project / "own")
    taken = git(*listing, str(path))
    if path.is_file() and (taken or (taken is None and may_be)):
        raise ConfigurationError(
            f"{path}: git {'would' if taken else 'may'} take it, with all that it says of people; move it to own/, "
            "which git and images leave out, or out of the project"
        )


def _dataset(ratings: Path, people: Path | None, names: Names, licence: str) -> tuple[dict[str, Any], Given, list[str]]:
    interactions = reading.all_interactions(ratings, "interactions", names)
    read: dict[str, object] = {"separator": None}
    notes = [interactions.taken.line]
    read |= _interactions(interactions, ratings, names, notes)
    obtain: dict[str, object] = {"interactions": str(ratings)}
    if people is not None:
        obtain["users"] = str(people)
        read["users"] = _users(people, names, notes)
    obtain |= {"synthetic": False, "licence": licence}
    return {"source": "custom", "obtain": obtain, "format": "custom", "read": read}, interactions, notes


def _interactions(interactions: Given, path: Path, names: Names, notes: list[str]) -> dict[str, object]:
    columns = dict(interactions.taken.columns)
    scale = scale_of(interactions.rows["rating"]) if "rating" in columns else None
    if "rating" in columns and scale is None:
        notes.append(f"{columns.pop('rating')}: no scale of ratings; every row counts the same")
    stamp = reading.role_column(path, "time", names, required=False)
    time = "none"
    if stamp is not None:
        _, first = reading.rows_of(path, {stamp: TEXT}, FIRST_ROWS)
        time = _time(first[stamp].head(FIRST_ROWS))
        if time == "none":
            notes.append(f"{stamp}: not seconds or milliseconds since 1970, and not ISO 8601; left out")
            stamp = None
        else:
            notes.append(f"{stamp}: times ({time})")
    if repeated := len(interactions.rows) - interactions.rows.n_unique(["user", "item"]):
        notes.append(f"{repeated:,} repeated pairs, each used once: the latest, without times the best rated")
    return {
        "interactions": {
            "user": columns["user"], "item": columns["item"], "rating": columns.get("rating"), "timestamp": stamp,
        },
        "rating_scale": scale,
        "time": time,
    }  # fmt: skip


def _time(values: pl.Series) -> str:
    present = values.drop_nulls()
    numbers = present.cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        numbers = numbers.filter(numbers != 0)  # which stands for a time that is not known
        for unit, (first, last) in (("seconds", SECONDS), ("milliseconds", MILLISECONDS)):
            if len(numbers) and numbers.is_between(first, last).all():
                return unit
        return "none"
    return "none" if present.to_frame("time").select(iso_seconds(pl.col("time")))["time"].null_count() else "iso"


def _users(path: Path, names: Names, notes: list[str]) -> dict[str, object]:
    """The columns of the users that can be features; small classes are what attacks try to infer.

    Bounds of numbers and lists of categories are not written: a user who has them from elsewhere adds them. Those that
    are read off the data are a leak, which the ledger names.
    Features are named after their columns, in small letters of ASCII, and numbered where that gives a name twice.
    """
    user = str(reading.role_column(path, "user", names))
    columns = [name for name in reading.columns_of(path, [user]) if name != user]
    lines, rows = reading.rows_of(path, {user: Column("id")} | dict.fromkeys(columns, TEXT))
    features: list[dict[str, Any]] = []
    used = {"user"}  # which is the id's
    for name in columns:
        values = rows[name]
        empty = values.is_null().any() or bool((values == "").any())
        present = values.replace("", None).drop_nulls()
        numbers = present.cast(pl.Float64, strict=False)
        distinct = present.n_unique()
        entry: dict[str, Any] = {"name": _feature_name(name, used), "column": name}
        if not numbers.null_count() and distinct >= FEWEST_NUMBERS and not empty:
            reading.require_finite(path, rows, name, lines)
            features.append(entry | {"kind": "numeric", "sensitive": False})
        elif 2 <= distinct <= MOST_CATEGORIES and (not empty or "unknown" not in present):
            unknown = {"unknown": "unknown"} if empty else {}
            features.append(entry | {"kind": "categorical", "sensitive": True} | unknown)
        else:
            notes.append(
                f"{name}: left out, it has {distinct:,} different values{' and empty fields' if empty else ''}"
            )
        used |= {feature["name"] for feature in features}
    described = ", ".join(
        f"{each['column']} ({each['kind']}{'' if each['name'] == each['column'].lower() else ', as ' + each['name']})"
        for each in features
    )
    notes.append(f"users: {path} ({len(rows):,} rows; {described or 'no features'})")
    return {"user": user, "features": features}


def _feature_name(column: str, used: set[str]) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_") or "feature"
    number = 2
    while (numbered := name if name not in used else f"{name}_{number}") in used:
        number += 1
    return numbered


def texts(name: str, n_users: int, n_items: int, *, attacked: bool) -> dict[str, str]:
    """File -> text of the suite: systems at first settings, attacks on users' classes or membership, what to tune.

    attacked: there are attributes of users to infer.
    """
    cutoffs = [k for k in (5, 10, 20) if k <= n_items // 2] or [1]
    fills = {
        "name": name,
        "cutoffs": cutoffs,
        "last": cutoffs[min(1, len(cutoffs) - 1)],
        "longest": cutoffs[-1],
        "negatives": max(1, min(100, n_items // 2)),
        "delta": f"1.0e-{len(str(n_users)) + 1}",
        "head": min(300, n_items),
    }
    files = {"params.yaml": "params", "attack.yaml": "attack" if attacked else "membership", "tuning.yaml": "tuning"}
    return {
        file: (TEMPLATES / f"{template}.yaml").read_text(encoding="utf-8").format(**fills)
        for file, template in files.items()
    }
