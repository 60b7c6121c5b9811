"""A synthetic replica of the Netflix Prize data: its files, formats and sizes, at any scale.

Popularity, activity and shares of ratings are close to the published ones; taste and everything else is invented.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from tasks.datasets.fetch import Places, ReplicaOptions, Source
from tasks.datasets.netflix import DAY, MAX_CUSTOMER, ROWS
from tasks.datasets.synthetic.generator import BLOCK, Description, Times, World, synthetic_source, write_note
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import Ints, blocks, ids

FIRST_DAY, LAST_DAY = 942_278_400, 1_135_987_200
"""11 November 1999 and 31 December 2005."""
NETFLIX = Description(
    words=("ratings", "customers", "movies"), users=480_189, items=17_770, rows=100_480_507, size=2_069_000_000,
    max_rows=16_000, sigma=1.25, tail=(11.0, 0.38), levels=(0.0460, 0.1008, 0.2867, 0.3359, 0.2306), kinds=(1,) * 40,
    taste=Taste(common=1.2, individual=0.5),
    times=Times(first=FIRST_DAY, last=LAST_DAY, growth=0.5, span=(280, 1.0), rows=12),
)  # fmt: skip
LAST_MOVIES = (4_499, 9_210, 13_367, 17_770)
"""The last movie in each of the four files."""
SOURCE = synthetic_source(
    "twin_netflix",
    "synthetic ratings in the format and size of the Netflix Prize data",
    "obtain: {layout: combined, scale: 1.0, seed: 2006}, format: netflix, read: {}",
    NETFLIX.size,
)


class ObtainOptions(ReplicaOptions):
    """How the files are laid out, and how large they are (`Description.sizes`)."""

    layout: Literal["combined", "training_set"]
    """Four files, or a folder with a file for every movie."""
    scale: float = Field(gt=0, le=5, allow_inf_nan=False)
    """There are customer ids for five times as many as published."""


def source(options: ObtainOptions) -> Source:
    """SOURCE, with the size of what these options ask for."""
    return NETFLIX.source(SOURCE, options.scale, "the Netflix Prize")


# A rating in one number, so that sorting groups ratings by movie: movie (from 0), user (from 0), level, day.
_USER_BITS, _LEVEL_BITS, _DAY_BITS = 22, 3, 12


def obtain(folder: Path, _: Places, options: ObtainOptions) -> None:
    """Fill `folder` with movie_titles.csv, the ratings, and a NOTE; the same bytes for the same options.

    All ratings are held at once, in 8 bytes each, since they are drawn by customer and written by movie.
    """
    world = World(NETFLIX, options)
    highest = max(world.n_users, round(min(1, options.scale) * MAX_CUSTOMER))
    customers = world.rng.permutation(ids(world.rng, world.n_users, highest))
    packed, end = np.empty(world.n_rows, dtype=np.int64), 0
    for rows in world.rows():
        part = slice(end, end := end + len(rows.user))
        packed[part] = (rows.item << _USER_BITS | rows.user) << _LEVEL_BITS | rows.level
        packed[part] = packed[part] << _DAY_BITS | (rows.time - FIRST_DAY) // DAY
    packed.sort()
    _write_titles(world, folder / "movie_titles.csv")
    edges = np.searchsorted(packed, np.arange(world.n_items + 1) << (_USER_BITS + _LEVEL_BITS + _DAY_BITS))
    if options.layout == "training_set":
        (folder / "training_set").mkdir()
        names = [f"training_set/mv_{number:07}.txt" for number in range(1, world.n_items + 1)]
        lasts = list(range(1, world.n_items + 1))
    else:
        names = [f"combined_data_{number}.txt" for number in range(1, 5)]
        lasts = [round(last / NETFLIX.items * world.n_items) for last in LAST_MOVIES]
    for name, first, last in zip(names, [0, *lasts], lasts, strict=False):
        with (folder / name).open("wb") as file:
            for begin, end in blocks(np.diff(edges[first : last + 1]), BLOCK):
                ROWS.append(file, _lines(packed[edges[first + begin] : edges[first + end]], customers))
    write_note(folder, options, "the Netflix Prize")


def _lines(packed: Ints, customers: Ints) -> pl.DataFrame:
    """`user`, `rating`, `date` of whole movies' ratings; the first customer of a movie has its line before it."""
    days = pl.select(pl.from_epoch(pl.int_range(FIRST_DAY, LAST_DAY + 1, DAY)).dt.to_string("%Y-%m-%d")).to_series()
    movie = packed >> (_USER_BITS + _LEVEL_BITS + _DAY_BITS)
    user = (packed >> (_LEVEL_BITS + _DAY_BITS)) & ((1 << _USER_BITS) - 1)
    customer = pl.Series("user", customers[user]).cast(pl.String)
    first = np.flatnonzero(np.diff(movie, prepend=-1))
    headers = pl.Series(movie[first] + 1).cast(pl.String) + ":\n" + customer.gather(first)
    rating = 1 + (packed >> _DAY_BITS & ((1 << _LEVEL_BITS) - 1))
    date = days.gather(packed & ((1 << _DAY_BITS) - 1))
    return pl.DataFrame({"user": customer.scatter(first, headers), "rating": rating, "date": date})


def _write_titles(world: World, path: Path) -> None:
    """MovieID,Year,Title in Latin-1: a few years are NULL, and some titles have commas."""
    n, rng = world.n_items, world.rng
    year = 2005 - rng.exponential(12, n).astype(np.int64).clip(0, 100)
    table = pl.DataFrame({"movie": np.arange(1, n + 1), "year": year, "odd": rng.random(n)})
    number = pl.col("movie").cast(pl.String)
    title = pl.when(pl.col("odd") < 0.05).then("Film Nº " + number + ", The Synthetic")
    unknown = (pl.col("odd") > 0.999) & (pl.col("movie") > 1)
    lines = table.select(
        number,
        pl.when(unknown).then(pl.lit("NULL")).otherwise(pl.col("year").cast(pl.String)),
        title.otherwise("Synthetic Movie " + number).alias("title"),
    )
    path.write_bytes(lines.write_csv(include_header=False, quote_style="never").encode("latin-1"))
