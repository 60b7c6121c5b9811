"""`dprec init`: what the parameters must say of a user's own files, written from what is in the files.

The data set and its protocol go into params.yaml, a suite of common systems and attacks into suites/NAME/. All of it
can be edited afterwards; docs/custom-data.md explains every key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tasks.config import params
from tasks.config.fields import NAME
from tasks.config.references import check
from tasks.errors import ConfigurationError
from tasks.external import reading
from tasks.external.reading import PARQUET, Given, Names
from tasks.stages import dvc_files
from tasks.stages.common import atomic_write

LICENCE = "Own data, for use in this house only."
FIRST_ROWS = 10_000
"""Of the times, to see what they are; the first run checks all of them."""
MOST_CATEGORIES = 30
FEWEST_NUMBERS = 10
"""Different values from which whole numbers are taken for a quantity and not for names of classes."""
SECONDS, MILLISECONDS = (3e7, 1e10), (3e10, 1e13)
"""Times since 1970 from 1971 on."""

SUITE = """\
# What the suite `{name}` runs, as `dprec init` wrote it: common systems at settings to begin with, not tuned ones.
# `dprec tune EXPERIMENT` tries those of tuning.yaml on validation data.

title: "Systems on {name}"
paper: null
data: {name}
task: top-k
about: {{part: "", limits: ""}}  # what the report says of the data beyond what is computed
evaluation: {{k: {cutoffs}, negatives: {negatives}, seed: 2021, recall: relevant}}
training: {{patience: 30, validation_k: {last}}}
defaults:
  experiments: {{data: {name}, features: processed/{name}, seeds: [0, 1, 2]}}

# An epsilon is per user: all interactions of one, of which `contribution` count. These settings hang on the numbers of
# users and items; whoever publishes a model with an epsilon takes both as public.
experiments:
  {name}-popularity: {{model: popularity}}
  {name}-ease: {{model: ease, config: {{regularization: 200.0}}}}
  {name}-bpr:
    model: bpr
    config: {{epochs: 40, batch_size: 512, learning_rate: 0.005, regularization: 0.00005, dimension: 32}}
  {name}-dp-popularity: {{model: dp-popularity, config: {{epsilon: 1.0, contribution: 10}}}}
  {name}-dpals:
    model: dpals
    config:
      {{epsilon: 1.0, delta: {delta}, dimension: 4, iterations: 2, user_ridge: 0.1, item_ridge: 100.0, clip: 1.0,
       lengthen: true, contribution: 10.0, denoise: true, head: {head}, counts_share: 0.4, gramian_share: 0.02}}
  {name}-dpae:
    model: dpae
    config:
      {{epochs: 40, batch_size: {batch}, learning_rate: 0.1, momentum: 0.9, dimension: 4, epsilon: 1.0, delta: {delta},
       clip_norm: 5.0}}
"""
ATTRIBUTES = """\
# What is tried on everything that the systems of `{name}` release.

attack:
  kind: attribute             # inference of the users' attributes that params.yaml calls sensitive
  k: {cutoffs}
  attackers: [neural, naive_bayes]
  sweep: {{k: [{last}], attackers: [neural]}}
  control_k: [{last}]
  target_share: 0.2
  split_seed: 2021
training_audit: null
"""
NO_ATTACK = """\
# Attacks need sensitive attributes of users, which params.yaml names under `users`.

attack: null
training_audit: null
"""
TUNING = """\
# What `dprec tune` tries for the systems of `{name}`. No stage reads it.

tuning:
  seed: 1000                  # not among the seeds of any result
  grid:
    ease: {{regularization: [50.0, 200.0, 800.0]}}
    bpr: {{learning_rate: [0.002, 0.005, 0.01], regularization: [0.00001, 0.0001]}}
    dp-popularity: {{contribution: [1, 5, 10, 50]}}
    dpals: {{contribution: [5.0, 10.0, 20.0]}}
    dpae: {{clip_norm: [2.5, 5.0, 10.0], learning_rate: [0.05, 0.1]}}
"""


@dataclass(frozen=True)
class Written:
    """What `begin` did."""

    files: list[Path]
    taken: list[str]
    """What was taken for what, a sentence a file."""


def begin(name: str, ratings: Path, people: Path | None, names: Names, licence: str = LICENCE) -> Written:
    """Write data set, protocol and suite for own files. Nothing is written if anything is wrong.

    Args:
        name: of the data set and of the suite.
        ratings: users' interactions; CSV or Parquet, with a column for the user and one for the item.
        people: what users are, or None.
        names: columns that are not recognised by usual names.
        licence: who may see the data; every report says it.

    Raises:
        ConfigurationError: the name is taken or no name, or this is no project.
        DataError: a file is missing or malformed, or a column is missing or ambiguous.
    """
    if not re.fullmatch(NAME, name):
        raise ConfigurationError(f"{name!r}: no name; it takes small letters, digits and hyphens")
    loaded = params.load()
    for what, names_of in (("data set", loaded.datasets), ("processed data set", loaded.processed)):
        if name in names_of:
            raise ConfigurationError(f"there is a {what} {name!r} already; choose another name")
    folder = params.own_file(name).parent
    if folder.exists():
        raise ConfigurationError(f"{folder}: is there already; choose another name, or move it away")
    given = reading.interactions(ratings, "interactions", names)
    if people is not None and (people.suffix == PARQUET) != (ratings.suffix == PARQUET):
        raise ConfigurationError("interactions and users must both be Parquet or both be text")
    separator = None if ratings.suffix == PARQUET else reading.separator(ratings)
    if people is not None and separator is not None and reading.separator(people) != separator:
        raise ConfigurationError(f"{people}: its fields are separated otherwise than those of {ratings}; save it alike")
    read: dict[str, Any] = {"separator": separator}
    notes = [given.taken.line]
    read |= _interactions(given, ratings, names, notes)
    obtain: dict[str, Any] = {"interactions": str(ratings)}
    if people is not None:
        obtain["users"] = str(people)
        read["users"] = _users(people, names, notes)
    obtain |= {"synthetic": False, "licence": licence}
    texts = _texts(name, given, any(feature["sensitive"] for feature in read.get("users", {}).get("features", ())))
    entries = {
        "datasets": {name: {"source": "custom", "obtain": obtain, "format": "custom", "read": read}},
        "processed": {
            name: {
                "dataset": name,
                "protocol": "gerai",
                "options": {"split_seed": 2021, "test_share": 0.2, "valid_share": 0.05},
            }
        },
    }
    files = _write(name, entries, texts)
    return Written(files, notes)


def _write(name: str, entries: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]) -> list[Path]:
    """Write everything, or nothing where the whole is not accepted."""
    root, folder = params.PARAMS_FILE, params.own_file(name).parent
    before = root.read_text(encoding="utf-8")
    text = before
    for section, entry in entries.items():
        text = _inserted(text, section, entry)
    files = {folder / file: content for file, content in texts.items()}
    try:
        folder.mkdir(parents=True)
        for path, content in files.items():
            path.write_text(content, encoding="utf-8")
        _replace(root, text)
        loaded = params.load()
        check(loaded, root)
        return [root, *files, *dvc_files.write(loaded)]
    except BaseException:
        _replace(root, before)
        for path in files:
            path.unlink(missing_ok=True)
        folder.rmdir()
        raise


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as place:
        place.write_text(text, encoding="utf-8")


def _inserted(text: str, section: str, entry: Mapping[str, Any]) -> str:
    """The text of params.yaml with an entry more at the end of a section, all else as it was.

    Raises:
        ConfigurationError: the section is not written as a block.
    """
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if re.match(rf"{section}:\s*(#.*)?$", line)]
    if len(starts) != 1:
        raise ConfigurationError(f"{params.PARAMS_FILE}: has no section {section!r} as a block, below which to write")
    end = next((n for n in range(starts[0] + 1, len(lines)) if re.match(r"[^\s#]", lines[n])), len(lines))
    while not lines[end - 1].strip():
        end -= 1
    written = yaml.safe_dump(dict(entry), default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)
    block = [f"  {line}" for line in written.splitlines(keepends=True)]
    return "".join([*lines[:end], *([] if lines[end - 1].endswith("\n") else ["\n"]), *block, *lines[end:]])


def _interactions(given: Given, path: Path, names: Names, notes: list[str]) -> dict[str, Any]:
    columns = dict(given.taken.columns)
    scale = _scale(given.rows["rating"]) if "rating" in columns else None
    if "rating" in columns and scale is None:
        notes.append(f"{columns.pop('rating')}: no scale of ratings; every row counts the same")
    stamp = reading.role_column(path, "time", names, required=False)
    time = "none"
    if stamp is not None:
        time = _time(_column(path, stamp))
        if time == "none":
            notes.append(f"{stamp}: not seconds or milliseconds since 1970, and not ISO 8601; left out")
            stamp = None
        else:
            notes.append(f"{stamp}: times ({time})")
    return {
        "interactions": {
            "user": columns["user"], "item": columns["item"], "rating": columns.get("rating"), "timestamp": stamp,
        },
        "rating_scale": scale,
        "time": time,
    }  # fmt: skip


def _column(path: Path, name: str) -> pl.Series:
    """The first rows of a column, as text."""
    if path.suffix == PARQUET:
        rows = pl.scan_parquet(path)
    else:
        rows = pl.scan_csv(path, separator=reading.separator(path), infer_schema=False)
    return rows.select(pl.col(name)).head(FIRST_ROWS).collect().to_series().cast(pl.String)


def _time(values: pl.Series) -> str:
    numbers = values.cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        for unit, (first, last) in (("seconds", SECONDS), ("milliseconds", MILLISECONDS)):
            if numbers.is_between(first, last).all():
                return unit
        return "none"
    return "iso" if values.str.contains(r"^\d{4}-\d{2}-\d{2}([T ]|$)").all() else "none"


def _scale(ratings: pl.Series) -> dict[str, float] | None:
    """`low`, `high` and `step` of ratings that lie on a scale; None: they are all the same, or on none."""
    levels = ratings.unique().sort()
    if not 2 <= len(levels) <= 101:
        return None
    low, high, step = float(levels[0]), float(levels[-1]), float(levels.diff().drop_nulls().min())  # type: ignore[arg-type]
    steps = (levels - low) / step
    if (steps - steps.round()).abs().max() > 1e-6:  # type: ignore[operator]
        return None
    return {"low": low, "high": high, "step": step}


def _users(path: Path, names: Names, notes: list[str]) -> dict[str, Any]:
    """The columns of the users that can be features; small classes are what attacks try to infer.

    Bounds of numbers and lists of categories are not written: whoever knows them without the data adds them. Those that
    are read off the data are a leak, which the ledger names.
    """
    user = reading.role_column(path, "user", names)
    rows = (
        pl.read_parquet(path)
        if path.suffix == PARQUET
        else pl.read_csv(path, separator=reading.separator(path), infer_schema=False)
    )
    features: list[dict[str, Any]] = []
    for name in rows.columns:
        if name == user:
            continue
        values = rows[name].cast(pl.String)
        empty = values.is_null().any() or bool((values == "").any())
        known = values.replace("", None).drop_nulls()
        numbers = known.cast(pl.Float64, strict=False)
        distinct = known.n_unique()
        entry: dict[str, Any] = {"name": _slug(name), "column": name}
        if distinct >= 2 and not numbers.null_count() and distinct >= FEWEST_NUMBERS and not empty:
            features.append(entry | {"kind": "numeric", "sensitive": False})
        elif 2 <= distinct <= MOST_CATEGORIES and (not empty or "unknown" not in known):
            unknown = {"unknown": "unknown"} if empty else {}
            features.append(entry | {"kind": "categorical", "sensitive": True} | unknown)
        else:
            notes.append(
                f"{name}: left out, it has {distinct:,} different values{' and empty fields' if empty else ''}"
            )
    said = ", ".join(f"{each['column']} ({each['kind']})" for each in features)
    notes.append(f"users: {path} ({len(rows):,} rows; {said or 'no features'})")
    return {"user": user, "features": features}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "feature"


def _texts(name: str, given: Given, attacked: bool) -> dict[str, str]:
    """File -> text of the suite."""
    n_users, n_items = given.rows["user"].n_unique(), given.rows["item"].n_unique()
    cutoffs = [k for k in (5, 10, 20) if k <= n_items // 2] or [1]
    fills = {
        "name": name,
        "cutoffs": cutoffs,
        "last": cutoffs[min(1, len(cutoffs) - 1)],
        "negatives": max(1, min(100, n_items // 2)),
        "delta": f"1.0e-{len(str(n_users))}",
        "head": min(300, n_items),
        "batch": min(1000, n_users),
    }
    attack = ATTRIBUTES if attacked else NO_ATTACK
    texts = {"params.yaml": SUITE, "attack.yaml": attack, "tuning.yaml": TUNING}
    return {file: text.format(**fills) for file, text in texts.items()}
