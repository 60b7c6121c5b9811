"""What formats of social networks have in common: SimHash of screen names, new numbers for users, labels given to them.

Names and account ids identify a person, so they stay in the raw files: raw tables have SimHash and numbers instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from pathlib import Path

import numpy as np
import polars as pl

from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.core.raw import write_raw
from tasks.datasets.files import Column, TextTable

LICENCE = "DP-CroSUE's page names no licence: for research."
CITED = (
    "Publications should cite J. Ren et al., Cross-Network Social User Embedding with Hybrid Differential Privacy "
    "Guarantees, CIKM 2022"
)
BLMNE = f"{CITED}, and J. Zhang et al., BL-MNE, ICDM 2017."
NAMED = "These files name people: do not redistribute them, and do not try to find out more about anyone."
"""Terms of what DP-CroSUE's page offers."""
BITS = 32
GRAM = 4
"""Characters of the pieces that a screen name is cut into."""
SIMHASH = tuple(Feature(name=f"simhash_{bit}", kind="numeric", low=0, high=1) for bit in range(BITS))
UNKNOWN = "unknown"
OCCUPATION = "occupation"
SEVERAL = "several"
"""The occupation of a user who is marked with more than one."""
GENDER = Feature(name="gender", kind="categorical", categories=("0", "1", UNKNOWN), sensitive=True, unknown=UNKNOWN)
"""0 and 1 as released: which is which is not said."""


def occupation_feature(n: int) -> Feature:
    """One of `n` occupations by their number, `several` or `unknown`."""
    names = (*map(str, range(n)), SEVERAL, UNKNOWN)
    return Feature(name=OCCUPATION, kind="categorical", categories=names, sensitive=True, unknown=UNKNOWN)


def occupation(indicators: pl.Expr) -> pl.Expr:
    """The category that a list of 0/1 stands for; null where there is no list."""
    category = indicators.list.arg_max().cast(pl.String)
    return pl.when(indicators.list.sum() > 1).then(pl.lit(SEVERAL)).otherwise(category)


def simhash(names: pl.Series) -> pl.DataFrame:
    """SimHash (Sadowski and Levin, 2007) of screen names, as the package simhash does it for DP-CroSUE's authors.

    A name in lower case, without what is no letter, digit or underscore, is cut into its substrings of 4 characters (a
    shorter one is left whole). The last 32 bits of each one's MD5 vote, as often as it occurs: a bit is 1 where more
    than half of the votes are.

    Args:
        names: (n,) text, null where there is none.

    Returns:
        (n, 32) int8 0/1, null where there is no name; `simhash_0` is the lowest bit.
    """
    text = names.alias("text").str.to_lowercase().str.replace_all(r"[^\w]+", "")
    rows = pl.DataFrame({"row": np.arange(len(names)), "text": text})
    starts = pl.int_ranges(0, (pl.col("text").str.len_chars().cast(pl.Int64) - GRAM).clip(0) + 1)
    grams = rows.drop_nulls().with_columns(start=starts).explode("start")
    grams = grams.select("row", gram=pl.col("text").str.slice(pl.col("start"), GRAM))
    distinct = grams["gram"].unique()
    votes = pl.Series("votes", [_md5(gram, BITS) for gram in distinct], pl.UInt64)
    sums = [(pl.col("votes").floordiv(1 << bit) % 2).sum() for bit in range(BITS)]
    bits = [(2 * ones > pl.len()).cast(pl.Int8).alias(SIMHASH[bit].name) for bit, ones in enumerate(sums)]
    hashes = grams.join(pl.DataFrame([distinct, votes]), on="gram").group_by("row").agg(bits)
    return rows.select("row").join(hashes, on="row", how="left", maintain_order="left").drop("row")


def number_users(ids: pl.Series, network: str) -> pl.DataFrame:
    """Numbers for users whose ids must not go further than the raw files.

    They tell nothing about the order of the ids, and one id's numbers in two networks have nothing to do with each
    other: an alignment that breaks ties by number learns nothing. They do not depend on the order in the file.

    Args:
        ids: the users of `network`, each once.

    Returns:
        id, as given, and number (int64, from 0).
    """
    keys = pl.Series([f"{_md5(f'{network}/{account}', 128):032x}" for account in ids], dtype=pl.String)
    return pl.DataFrame({"id": ids.gather(keys.arg_sort()), "number": np.arange(len(ids))})


def replace_ids(table: pl.DataFrame, users: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """The same rows with ids of users, all known, replaced by their numbers (`number_users`)."""
    new = {column: pl.col(column).replace_strict(users["id"], users["number"]) for column in columns}
    return table.with_columns(**new)


def labels_table(name: str, groups: Mapping[str, int], kind: type[pl.DataType]) -> TextTable:
    """The file of what was found out about users: tab-separated, with a header.

    Args:
        groups: name -> how many 0/1 it has: the columns `name_0`, `name_1`, ..., or `name` if it is one.
        kind: of users' ids.
    """
    columns = {"user": Column(kind)}
    for group, size in groups.items():
        columns |= dict.fromkeys(_members(group, size), Column(pl.Int8, values=(0, 1), empty=True))
    return TextTable(name, columns, "\t", headed=True, unique=("user",))


def _members(group: str, size: int) -> list[str]:
    return [f"{group}_{number}" for number in range(size)] if size > 1 else [group]


def read_labels(path: Path, groups: Mapping[str, int], users: pl.Series, where: str) -> pl.DataFrame:
    """What was found out about users of the file `where`.

    Returns:
        user (as in `users`), and of each group a list of int8, or an int8 if it is one, null where it is not known; one
        row per row of the file.

    Raises:
        DataError: as `TextTable.read`; a value is not 0 or 1; a group has only some of its values, or an occupation
            group no 1; a user is unknown or repeated.
    """
    file = labels_table(path.name, groups, type(users.dtype))
    table = file.read(path.parent, {"user": (users, f"a user of {where}")})
    members = {group: _members(group, size) for group, size in groups.items()}
    for group, names in members.items():
        _require_complete(path, table, group, names)
    return table.select(
        "user",
        *(
            pl.when(pl.col(names[0]).is_not_null())
            .then(pl.concat_list(names) if len(names) > 1 else names[0])
            .alias(group)
            for group, names in members.items()
        ),
    )


def _require_complete(path: Path, table: pl.DataFrame, group: str, members: list[str]) -> None:
    filled = table.select(pl.sum_horizontal(pl.col(members).is_not_null()))[members[0]]
    if len(partly := ((filled > 0) & (filled < len(members))).arg_true()):
        line, some = partly[0] + 2, filled[partly[0]]
        raise DataError(f"{path}:{line}: {some} of {len(members)} {group} fields are filled; fill all of them, or none")
    if group == OCCUPATION:
        none = table.select((pl.sum_horizontal(members) == 0) & pl.col(members[0]).is_not_null()).to_series().arg_true()
        if len(none):
            raise DataError(f"{path}:{none[0] + 2}: no occupation is marked; leave the fields empty if it is not known")


def write_network(
    destination: Path,
    people: pl.DataFrame,
    follows: pl.DataFrame,
    posts: pl.DataFrame,
    *,
    counts: tuple[str, ...],
    gender: Feature,
    groups: Mapping[str, int],
    more: tuple[str, ...] = (),
) -> pl.DataFrame:
    """Write the raw tables of a network into `destination`, whose name is the network's, and number its users again.

    Args:
        people: user, name, `counts`, gender, lists `occupation` and `interest`, and `more`, which are no features; one
            row per user.
        follows: source, target. posts: user, text.
        groups: how many occupations and interests there are.

    Returns:
        id and number of its users (`number_users`).
    """
    numbers = number_users(people["user"], destination.name)
    table = pl.concat([people, simhash(people["name"])], how="horizontal")
    table = replace_ids(table, numbers, "user").sort("user")
    bits = [feature.name for feature in SIMHASH]
    several = {"occupation": occupation(pl.col("occupation")), "occupations": pl.col("occupation")}
    labels = tuple(f"interests_{number}" for number in range(groups["interest"]))
    interests = {name: pl.col("interest").list.get(number) for number, name in enumerate(labels)}
    social = replace_ids(follows, numbers, "source", "target").with_columns(relation=pl.lit("follow"))
    numeric = tuple(Feature(name=name, kind="numeric") for name in counts)
    write_raw(
        destination,
        {
            "users": table.select("user", *bits, *counts, "gender", **several, **{name: name for name in more}),
            "labels": table.select("user", **interests),
            "social": social.sort("source", "target"),
            "posts": replace_ids(posts, numbers, "user").sort("user", "text"),
        },
        features=(*SIMHASH, *numeric, gender, occupation_feature(groups["occupation"])),
        labels=labels,
    )
    return numbers


def _md5(text: str, bits: int) -> int:
    """The last bits of its MD5, which keeps no secret here: it only spreads texts evenly."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[-bits // 8 :])
