"""Synthetic replicas of MovieLens 1M and 20M: their files, formats and sizes, at any scale.

Popularity, activity, shares of ratings and of attributes are close to the published ones, and everything else is
invented.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from tasks.datasets import movielens
from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.synthetic.generator import DAY, Attribute, Description, Replica, Times, World
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import Ints, ids, pick

GENRES = {
    "Action": 10, "Adventure": 5, "Animation": 3, "Children's": 4, "Comedy": 22, "Crime": 4, "Documentary": 4,
    "Drama": 24, "Fantasy": 2, "Film-Noir": 1, "Horror": 6, "Musical": 2, "Mystery": 2, "Romance": 5, "Sci-Fi": 2,
    "Thriller": 2, "War": 1, "Western": 1,
}  # fmt: skip
"""Shares of films."""
OCCUPATIONS = (195, 528, 267, 173, 759, 112, 236, 679, 17, 92, 129, 711, 388, 142, 302, 144, 241, 502, 70, 72, 281)
"""Users of each occupation, and of each gender and age group below, in the order of the format."""
_COMMON: dict[str, Any] = {
    "min_rows": 20, "kinds": tuple(GENRES.values()), "places": (1, 1), "style": 0.9,
    "taste": Taste(common=1.0, individual=0.6),
}  # fmt: skip


def _times(first: int, last: int) -> Times:
    """Most users come once, and some for years."""
    return Times(first=first, last=last, span=(0.22, 3.0), rows=60, sitting=1_200)


LAYOUTS = {
    "ml-1m": Description(
        name="ml-1m", users=6_040, items=3_706, rows=1_000_209, max_rows=2_314, sigma=1.14, tail=(6.8, 0.4),
        levels=(0.0562, 0.1075, 0.2611, 0.3489, 0.2263), times=_times(956_703_932, 1_046_454_590), size=25_400_000,
        attributes={
            "gender": Attribute(shares=(1_709, 4_331), strength=2.5),
            "age": Attribute(shares=(222, 1_103, 2_096, 1_193, 550, 496, 380), strength=2.5),
            "occupation": Attribute(shares=OCCUPATIONS, strength=2.5),
        },
        **_COMMON,
    ),
    "ml-20m": Description(
        name="ml-20m", users=138_493, items=26_744, rows=20_000_263, max_rows=9_254, sigma=1.38, tail=(12.5, 0.4),
        levels=(0.012, 0.034, 0.014, 0.072, 0.044, 0.215, 0.110, 0.278, 0.076, 0.145),
        times=_times(789_652_009, 1_427_784_002), size=542_000_000, **_COMMON,
    ),
}  # fmt: skip
LISTED = {"ml-1m": (3_883, 3_952), "ml-20m": (27_278, 131_262)}
"""Films in the list of films, and their highest id; others are missing."""


class ObtainOptions(ReplicaOptions):
    """Which data set's replica, and how large (`Description.sizes`)."""

    layout: Literal["ml-1m", "ml-20m"]


def _write(folder: Path, world: World, options: ObtainOptions) -> None:
    layout = options.layout
    n_published, last = LISTED[layout]
    n_films = max(world.n_items, round(n_published / world.described.items * world.n_items))
    film = ids(world.rng, n_films, round(last * n_films / n_published))
    rated = np.sort(world.rng.choice(n_films, world.n_items, replace=False))
    films = _films(world, film, rated)
    stars = np.array((movielens.HALF_STARS if len(world.described.levels) == 10 else movielens.SCALE).levels)
    tables = (
        pl.DataFrame(
            {"user": 1 + rows.user, "item": film[rated[rows.item]], "rating": stars[rows.level], "timestamp": rows.time}
        )
        for rows in world.rows()
    )
    if layout == "ml-1m":
        movielens.RATINGS_1M.write(folder, (table.cast({"rating": pl.Int8}) for table in tables))
        movielens.USERS_1M.write(folder, [_users(world)])
        movielens.ITEMS_1M.write(folder, [films.with_columns(pl.col("genres").list.join("|"))])
    else:
        movielens.RATINGS_20M.write(folder, (table.sort("user", "item") for table in tables))
        genres = pl.col("genres").list.join("|").str.replace("Children's", "Children", literal=True)
        movielens.ITEMS_20M.write(folder, [films.with_columns(genres)])


def _films(world: World, film: Ints, rated: Ints) -> pl.DataFrame:
    """item, title, year and the list of genres of all films; the main genre of those that are rated is their kind."""
    rng, n = world.rng, len(film)
    main = pick(rng, [*GENRES.values()], n)
    main[rated] = world.kind(np.arange(len(rated)))
    has = rng.random((n, len(GENRES))) < 0.04
    has[np.arange(n), main] = True
    names, number = np.array([*GENRES]), pl.int_range(1, pl.len() + 1).cast(pl.String)
    last = 1970 + world.described.times.last // (365 * DAY)
    years = last - rng.exponential(15, n).astype(np.int64).clip(0, last - 1915)
    table = pl.DataFrame({"item": film, "year": years, "genres": [names[row].tolist() for row in has]})
    # As in "Avventura, L' (1960)": commas in titles, and letters beyond ASCII.
    name = pl.when(pl.Series(rng.random(n) < 0.2)).then("Film Nº " + number + ", The Synthetic")
    title = name.otherwise("Synthetic Film Nº " + number) + " (" + pl.col("year").cast(pl.String) + ")"
    return table.with_columns(title=title)


def _users(world: World) -> pl.DataFrame:
    values = world.attributes
    zip_codes = pl.Series(world.rng.integers(1, 500, world.n_users)).cast(pl.String).str.zfill(5)  # no post office's
    return pl.DataFrame(
        {
            "user": np.arange(1, world.n_users + 1),
            "gender": np.array(movielens.GENDERS)[values["gender"]],
            "age": np.array([*movielens.AGES])[values["age"]],
            "occupation": values["occupation"],
            "zip_code": zip_codes,
        }
    )


REPLICA = Replica(
    "twin_movielens",
    "synthetic ratings in the formats and sizes of MovieLens 1M or 20M",
    "obtain: {layout: ml-1m, scale: 1.0, seed: 2003}, format: ml_1m, read: {time: seconds}",
    LAYOUTS,
    ObtainOptions,
    World,
    _write,
)
