"""A synthetic replica of the Netflix Prize data: its files, formats and sizes, at any scale.

Popularity, activity and shares of ratings are close to the published ones; taste and everything else is invented.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.netflix import DAY, MAX_CUSTOMER, ROWS
from tasks.datasets.synthetic.generator import BLOCK, Description, Replica, Times, World
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import ids

FIRST_DAY, LAST_DAY = 942_278_400, 1_135_987_200
"""11 November 1999 and 31 December 2005."""
NETFLIX = Description(
    name="the Netflix Prize", words=("ratings", "customers", "movies"), users=480_189, items=17_770, rows=100_480_507,
    size=2_069_000_000, max_rows=16_000,
    sigma=1.25, tail=(11.0, 0.38), levels=(0.0460, 0.1008, 0.2867, 0.3359, 0.2306), kinds=(1,) * 40,
    taste=Taste(common=1.2, individual=0.5),
    times=Times(first=FIRST_DAY, last=LAST_DAY, growth=0.5, span=(280, 1.0), rows=12),
)  # fmt: skip
LAST_MOVIES = (4_499, 9_210, 13_367, 17_770)
"""The last movie in each of the four files."""


class ObtainOptions(ReplicaOptions):
    """How large the four files are (`Description.sizes`)."""

    layout: Literal["combined"]
    scale: float = Field(gt=0, le=5, allow_inf_nan=False)
    """There are customer ids for five times as many as published."""


def _write(folder: Path, world: World, options: ObtainOptions) -> None:
    """All ratings are held at once, since they are drawn by customer and written by movie."""
    highest = max(world.n_users, round(min(1, options.scale) * MAX_CUSTOMER))
    customers = world.rng.permutation(ids(world.rng, world.n_users, highest))
    kinds = {"item": pl.Int32, "user": pl.Int32, "rating": pl.Int8, "day": pl.Int16}
    ratings = pl.concat(
        pl.DataFrame([r.item, customers[r.user], 1 + r.level, (r.time - FIRST_DAY) // DAY], kinds) for r in world.rows()
    ).sort("item", "user")
    _write_titles(world, folder / "movie_titles.csv")
    lasts = [round(last / NETFLIX.items * world.n_items) for last in LAST_MOVIES]
    edges = [0, *np.searchsorted(ratings["item"].to_numpy(), lasts)]
    header = pl.when(pl.col("item").diff().fill_null(1) > 0).then(pl.format("{}:\n", 1 + pl.col("item")))
    date = pl.from_epoch(FIRST_DAY + DAY * pl.col("day").cast(pl.Int64)).dt.to_string("%Y-%m-%d")
    for number, (first, last) in enumerate(pairwise(edges), start=1):
        rows = ratings[first:last].with_columns(header.alias("header"))
        lines = (
            part.select("rating", user=pl.concat_str("header", "user", ignore_nulls=True), date=date)
            for part in rows.iter_slices(BLOCK)
        )
        replace(ROWS, name=f"combined_data_{number}.txt").write(folder, lines)


def _write_titles(world: World, path: Path) -> None:
    """MovieID,Year,Title in Latin-1: a few years are NULL, and some titles have commas."""
    n, rng = world.n_items, world.rng
    year = 2005 - rng.exponential(12, n).astype(np.int64).clip(0, 100)
    table = pl.DataFrame({"movie": np.arange(1, n + 1), "year": year, "odd": rng.random(n)})
    number, unknown = pl.col("movie").cast(pl.String), (pl.col("odd") > 0.999) & (pl.col("movie") > 1)
    title = pl.when(pl.col("odd") < 0.05).then("Film Nº " + number + ", The Synthetic")
    lines = table.select(
        "movie",
        pl.when(unknown).then(pl.lit("NULL")).otherwise(pl.col("year").cast(pl.String)),
        title=title.otherwise("Synthetic Movie " + number),
    )
    path.write_bytes(lines.write_csv(include_header=False, quote_style="never").encode("latin-1"))


REPLICA = Replica(
    "twin_netflix",
    "synthetic ratings in the format and size of the Netflix Prize data",
    "obtain: {layout: combined, scale: 1.0, seed: 2006}, format: netflix, read: {}",
    {"combined": NETFLIX},
    ObtainOptions,
    World,
    _write,
)
