"""A user's own data: tables as CSV or Parquet, and in params.yaml which of their columns mean what.

What cannot be meant is refused with the file, its line (of a Parquet file: its row, from 1) and the column. Columns
that params.yaml does not name are not read. docs/custom-data.md is the guide.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field, model_validator

from tasks.core.contracts import SPLITS, Feature, RatingScale
from tasks.core.errors import DataError
from tasks.core.raw import raw_writer, write_raw
from tasks.datasets.fetch import Options, Places, Source
from tasks.datasets.tables import LONGER_SEPARATORS, SUFFIXES, UNCLEAN, Column, batches, in_seconds, read_table
from tasks.datasets.text import allow, require_unique

TABLES = ("interactions", "users", "social")
MOST_LEVELS = 100_000
"""Ratings of a finer scale cannot be distinguished from numbers of any kind."""
FLOAT32 = 2.0**-22
"""Relative: what rating, lowest and highest level lose together as float32."""
LARGEST = 1e18
"""Of the numbers of a feature, without sign: float32 has their differences and squares."""
RELATION = "link"
"""What a social link is called where no column says it."""

SOURCE = Source(
    name="custom",
    address="files that params.yaml names",
    holds="your own interactions, users and social links: docs/custom-data.md",
    entry=(
        "{source: custom, obtain: {interactions: ratings.csv, synthetic: false, licence: who may see it}, format: "
        "custom, read: {separator: ',', interactions: {user: user, item: item, rating: null, timestamp: null}, "
        "rating_scale: null, time: none}}"
    ),
    licence="Whatever you agreed to when you got them.",
)


class ObtainOptions(Options):
    """Where the files are; a path is relative to the project's root, or absolute."""

    interactions: str
    users: str | None = None
    social: str | None = None
    synthetic: bool
    """Whether the people in them are invented: said in every report."""
    licence: str = Field(min_length=1)
    """Who may see and share the data: printed on download and kept in the record."""


def _require_distinct(what: str, names: list[str]) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{what} {repeated[0]!r} is named twice")


class _Columns(Options):
    @model_validator(mode="after")
    def _each_column_once(self) -> _Columns:
        _require_distinct("column", [value for value in self.__dict__.values() if isinstance(value, str)])
        return self


class Interactions(_Columns):
    """Columns of the interactions."""

    user: str
    item: str
    rating: str | None
    timestamp: str | None
    split: str | None = None
    """Which part an interaction is of: train, valid or test."""


class Scale(RatingScale, Options):
    """A scale that has levels."""

    step: float = Field(gt=0)

    @model_validator(mode="after")
    def _has_levels(self) -> Scale:
        steps = (self.high - self.low) / self.step
        if not isfinite(steps) or not 1 <= round(steps) < MOST_LEVELS or abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{self.low:g} to {self.high:g} in steps of {self.step:g} is no scale")
        return self


class UserFeature(Options):
    """A column of the users that models may learn from."""

    name: str = Field(min_length=1)
    column: str
    kind: Literal["numeric", "categorical"]
    low: float | None = Field(None, ge=-LARGEST, le=LARGEST)
    high: float | None = Field(None, ge=-LARGEST, le=LARGEST)
    """Bounds that are known without the data (numeric). Without them the data's own are taken, which leaks them."""
    categories: list[str] | None = None
    """All categories there are (categorical). Without them those that occur are taken, in alphabetical order: that a
    category is there then tells that a user has it: they are marked `fitted`, and the ledger says ∞."""
    sensitive: bool
    """Whether attacks try to infer it."""
    unknown: str | None = None
    """The category that stands for a missing value (categorical); without it, a missing value is refused."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> UserFeature:
        if self.name == "user":
            raise ValueError("'user' is the id's name; choose another")
        if self.kind == "numeric":
            if self.categories is not None or self.unknown is not None:
                raise ValueError("a number has no categories and no `unknown`")
            if (self.low is None) != (self.high is None):
                raise ValueError("give both `low` and `high`, or neither")
            if self.low is not None and self.high is not None and self.low >= self.high:
                raise ValueError(f"`low` {self.low:g} is not below `high` {self.high:g}")
        elif self.low is not None or self.high is not None:
            raise ValueError("a category has no `low` and `high`")
        elif self.categories is not None:
            if len(set(self.categories)) < len(self.categories) or not self.categories or "" in self.categories:
                raise ValueError("categories must be there, not empty, and each named once")
            if self.unknown is not None and self.unknown not in self.categories:
                raise ValueError(f"`unknown` {self.unknown!r} is not among the categories")
        return self


class Users(Options):
    """Columns of the users."""

    user: str
    features: list[UserFeature]

    @model_validator(mode="after")
    def _each_name_once(self) -> Users:
        _require_distinct("feature", [feature.name for feature in self.features])
        _require_distinct("column", [self.user, *(feature.column for feature in self.features)])
        return self


class Social(_Columns):
    """Columns of the social links."""

    source: str
    """The user who trusts or follows."""
    target: str
    relation: str | None


class ReadOptions(Options):
    """Which columns mean what."""

    separator: str | None
    """Between the fields of text tables; null for what the first line of each shows."""
    interactions: Interactions
    rating_scale: Scale | None
    """Null where there are no ratings."""
    time: Literal["seconds", "milliseconds", "iso", "order", "none"]
    """What time stamps are: numbers since 1970, dates and times as ISO 8601 writes them (UTC where no zone is given),
    or not there, and then whether the order of the rows is the order in time."""
    users: Users | None = None
    social: Social | None = None

    @model_validator(mode="after")
    def _goes_together(self) -> ReadOptions:
        text = self.separator
        unusual = text is not None and (len(text) != 1 or not text.isascii() or text.isalnum() or text in '"\r\n.-+_')
        if unusual and text not in LONGER_SEPARATORS:
            raise ValueError(f"separator: {text!r} is not one character that separates")
        if (self.interactions.rating is None) != (self.rating_scale is None):
            raise ValueError("rating_scale: give it with the column of ratings, and null without one")
        if (self.interactions.timestamp is None) != (self.time in ("order", "none")):
            raise ValueError("time: say what the column of time stamps holds, and `order` or `none` without one")
        return self


def source(options: ObtainOptions) -> Source:
    """What is said about these files; their folders are not, since records and reports are handed on."""
    address = f"own files ({', '.join(Path(path).name for _, path in _placed_files(options))})"
    return replace(SOURCE, address=address, synthetic=options.synthetic, licence=options.licence)


def obtain(folder: Path, _: Places, options: ObtainOptions) -> None:
    """Copy the files into `folder`, named after their tables.

    Raises:
        DataError: a file is not there, or is of no kind that can be read.
    """
    for table, path in _placed_files(options):
        if not path.is_file():
            raise DataError(f"{path}: not found; correct `{table}` under `obtain` in params.yaml")
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{path}: is none of {', '.join(SUFFIXES)}; save it as CSV or Parquet")
        shutil.copyfile(path, folder / f"{table}{path.suffix.lower()}")


def _placed_files(options: ObtainOptions) -> list[tuple[str, Path]]:
    paths = {"interactions": options.interactions, "users": options.users, "social": options.social}
    return [(table, Path(path).expanduser()) for table, path in paths.items() if path is not None]


@dataclass
class _Ids:
    """What is known of the ids of users (or of items) from what has been read."""

    integral: bool = True
    """Whether all of them are whole numbers, so that they can be kept as such."""
    listed: pl.Series | None = None
    """All ids that may occur, None where any may."""
    file: str = ""
    """The file that lists them."""


def convert(folder: Path, destination: Path, options: ReadOptions) -> None:
    """Write the raw tables: interactions, users with their features, social links.

    Ids stay whole numbers where all of them are, in all tables; otherwise they are text. All rows are kept: repeated
    interactions are the protocol's to judge.

    Raises:
        DataError: a file that `options` name is missing, or is there and not named; a column is missing; a value is
            missing, malformed or not allowed; a user is listed twice; an interaction or a link names a user whom the
            table of users does not have.
    """
    paths = {table: _find(folder, table, getattr(options, table) is not None) for table in TABLES}
    people, items = _Ids(), _Ids()
    users: pl.DataFrame | None = None
    features: tuple[Feature, ...] = ()
    if options.users is not None:
        lines, users = _users(paths["users"], options.users, options.separator, people)
        people.listed, people.file = users[options.users.user], f"{paths['users']}"
        features = tuple(_feature(paths["users"], users, lines, feature) for feature in options.users.features)
        columns = {"user": options.users.user} | {feature.name: feature.column for feature in options.users.features}
        users = users.select(pl.col(column).alias(name) for name, column in columns.items())
    parts = {"interactions": _interactions(paths["interactions"], options, people, items)}
    if options.social is not None:
        parts["social"] = _social(paths["social"], options.social, options.separator, people)
    if users is not None:
        parts["users"] = iter([users])
    text = {table: _write(rows, destination / f"{table}.part") for table, rows in parts.items()}
    ids = {"user": people, "source": people, "target": people, "item": items}
    numbers = [pl.col(name).cast(pl.Int64) for name, kind_of_ids in ids.items() if kind_of_ids.integral]
    for table, path in text.items():
        rows = pl.scan_parquet(path, glob=False)
        casts = [number for number in numbers if number.meta.output_name() in rows.collect_schema()]
        rows.with_columns(casts).sink_parquet(destination / f"{table}.parquet")
        path.unlink()
    if options.interactions.split is not None:
        _require_one_part(paths["interactions"], destination / "interactions.parquet")
    time: Literal["seconds", "order", "none"] = options.time if options.time in ("order", "none") else "seconds"
    write_raw(destination, dict.fromkeys(parts), features=features, scale=options.rating_scale, time=time)


def _require_one_part(path: Path, rows: Path) -> None:
    """Refuse a pair of user and item in two parts: which of them is used would depend on the order of the rows."""
    pairs = pl.scan_parquet(rows).group_by("user", "item").agg(parts=pl.col("split").n_unique())
    several = pairs.filter(pl.col("parts") > 1).sort("user", "item").collect()
    if len(several):
        user, item, _ = several.row(0)
        raise DataError(f"{path}: {len(several):,} pairs are in several parts, such as {user!r} and {item!r}; keep one")


def _find(folder: Path, table: str, named: bool) -> Path:
    files = [path for suffix in SUFFIXES if (path := folder / f"{table}{suffix}").is_file()]
    if named and len(files) != 1:
        raise DataError(f"{folder}: no file of {table}; name one under `obtain` in params.yaml, or none under `read`")
    if files and not named:
        raise DataError(f"{files[0]}: `read` in params.yaml has no `{table}`; add it, or name no file under `obtain`")
    return files[0] if files else folder / table


def _write(parts: Iterator[pl.DataFrame], path: Path) -> Path:
    first = next(parts)
    with raw_writer(path, first.to_arrow(compat_level=pl.CompatLevel.oldest()).schema, differences=()) as write:
        for rows in chain([first], parts):
            write(rows)
    return path


def _interactions(path: Path, options: ReadOptions, people: _Ids, items: _Ids) -> Iterator[pl.DataFrame]:
    names, time, scale = options.interactions, options.time, options.rating_scale
    columns = {names.user: Column("id"), names.item: Column("id")}
    if names.rating is not None:
        columns[names.rating] = Column("number")
    if names.timestamp is not None:
        columns[names.timestamp] = Column("time" if time == "iso" else "number")
    if names.split is not None:
        columns[names.split] = Column("text")
    position = 0
    for lines, rows in batches(path, options.separator, columns):
        _check_ids(path, rows, names.user, lines, people)
        _check_ids(path, rows, names.item, lines, items)
        rating, timestamp = pl.lit(None, pl.Float32), pl.lit(None, pl.Int64)
        if names.rating is not None and scale is not None:
            rating = level_of(pl.col(names.rating), scale)
            words = f"{scale.low:g} to {scale.high:g} in steps of {scale.step:g}"
            allow(path, rows, names.rating, rating.is_not_null(), words, lines)
        if names.timestamp is not None and time != "order" and time != "none":
            rows = in_seconds(path, rows, names.timestamp, lines, time)
            timestamp = pl.col(names.timestamp)
        table = rows.select(user=pl.col(names.user), item=pl.col(names.item), rating=rating, timestamp=timestamp)
        if time == "order":
            table = table.with_columns(position=pl.int_range(position, position + len(rows), dtype=pl.Int64))
            position += len(rows)
        if names.split is not None:
            part, words = pl.col(names.split).is_in(SPLITS), f"one of {', '.join(SPLITS)}"
            allow(path, rows, names.split, part, words, lines)
            table = table.with_columns(split=rows[names.split])
        yield table


def level_of(ratings: pl.Expr, scale: RatingScale) -> pl.Expr:
    """The level that each rating is, float32; null where it is none by more than float32 loses of a rating."""
    step = ((ratings - scale.low) / scale.step).round().clip(0, len(scale.levels) - 1)
    level = scale.low + scale.step * step
    near = (ratings - level).abs() <= FLOAT32 * max(abs(scale.low), abs(scale.high))
    return pl.when(near).then(level.cast(pl.Float32))


def _users(path: Path, spec: Users, separator: str | None, people: _Ids) -> tuple[pl.Series, pl.DataFrame]:
    columns = {spec.user: Column("id")}
    for feature in spec.features:
        columns[feature.column] = Column("number" if feature.kind == "numeric" else "text", feature.unknown is not None)
    lines, rows = read_table(path, separator, columns)
    _check_ids(path, rows, spec.user, lines, people)
    require_unique(path, rows, [spec.user], lines)
    return lines, rows


def _feature(path: Path, rows: pl.DataFrame, lines: pl.Series, spec: UserFeature) -> Feature:
    def require(right: pl.Expr, words: str) -> None:
        allow(path, rows, spec.column, right, words, lines)

    column, categories = pl.col(spec.column), spec.categories
    if spec.kind == "numeric":
        require(column.abs() <= LARGEST, f"a number up to {LARGEST:g}")  # which NaN and infinity are not
        if spec.low is not None and spec.high is not None:
            require(column.is_between(spec.low, spec.high), f"{spec.low:g} to {spec.high:g}, as params.yaml says")
    elif categories is None:
        require(~column.str.contains(UNCLEAN), "a category (blanks around it, or a control character)")
        values = {*rows[spec.column].drop_nulls(), *([spec.unknown] if spec.unknown is not None else [])}
        categories = sorted(values)
    else:
        listed = ", ".join(categories[:8]) + (", ..." if len(categories) > 8 else "")
        require(column.is_in(categories), f"one of {listed}, as params.yaml says")
    return Feature(
        name=spec.name,
        kind=spec.kind,
        categories=tuple(categories or ()),
        low=spec.low,
        high=spec.high,
        bounds="fitted" if spec.kind == "categorical" and spec.categories is None else "public",
        sensitive=spec.sensitive,
        unknown=spec.unknown,
    )


def _social(path: Path, names: Social, separator: str | None, people: _Ids) -> Iterator[pl.DataFrame]:
    columns = {names.source: Column("id"), names.target: Column("id")}
    relation = pl.lit(RELATION)
    if names.relation is not None:
        columns[names.relation] = Column("text")
        relation = pl.col(names.relation)
    for lines, rows in batches(path, separator, columns):
        _check_ids(path, rows, names.source, lines, people)
        _check_ids(path, rows, names.target, lines, people)
        yield rows.select(source=pl.col(names.source), target=pl.col(names.target), relation=relation)


def _check_ids(path: Path, rows: pl.DataFrame, column: str, lines: pl.Series, ids: _Ids) -> None:
    """Note whether all ids are whole numbers.

    Raises:
        DataError: a value is none of those that are listed.
    """
    value, number = pl.col(column), pl.col(column).cast(pl.Int64, strict=False)
    # 007 stays text, else it would be the same id as 7
    integral = number.is_not_null() & (number >= 0) & ((value == "0") | ~value.str.contains("^[0+-]"))
    ids.integral &= rows.select(integral.all()).item()
    if ids.listed is not None:
        words = f"a user of {ids.file}: list the user there, or leave the line out"
        allow(path, rows, column, value.is_in(ids.listed.implode()), words, lines)
