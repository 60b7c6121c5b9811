"""A small synthetic data set in ML-100K's raw format: no person in it exists, so it may be published.

It is built so that what the pipeline measures is there to be found: a long tail of popularity and activity, personal
taste that a factor model can learn, and taste that depends on gender, age and occupation, which attacks can infer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.datasets.fetch import NoOptions, Places, Source
from tasks.datasets.movielens import RATINGS_100K, USERS_100K, items_100k

SOURCE = Source(
    name="demo",
    address="",
    synthetic=True,
    holds="about 18,000 synthetic ratings by 300 users of 500 films, in MovieLens 100K's format",
    about=410_000,
    entry="{source: demo, obtain: {}, format: ml_100k, read: {}}",
    licence="SYNTHETIC data: every user, film and rating is drawn at random.",
    terms="Public domain (CC0 1.0).",
)
ObtainOptions = NoOptions
SEED = 1997
"""Committed results of the demo suite are of the data set that it gives."""

N_USERS, N_ITEMS, MEAN_RATINGS, MIN_RATINGS = 300, 500, 60, 20
N_STYLES = 6  # hidden qualities of films other than genre
FIRST_DAY, N_DAYS, DAY = 874_713_600, 215, 86_400  # 20 September 1997, as ML-100K
RATING_SHARES = (0.06, 0.11, 0.27, 0.34, 0.22)  # of levels 1 to 5, as in ML-100K

GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
# Occupation: share of people, share of women, mean age, spread of age, genres it likes.
OCCUPATIONS: dict[str, tuple[float, float, int, int, tuple[str, ...]]] = {
    "administrator": (0.06, 0.45, 40, 9, ("Mystery", "Comedy")),
    "artist": (0.03, 0.45, 32, 8, ("Film-Noir", "Documentary")),
    "doctor": (0.01, 0.20, 45, 9, ("Mystery",)),
    "educator": (0.11, 0.30, 48, 8, ("Documentary", "Drama", "Musical")),
    "engineer": (0.12, 0.05, 38, 9, ("Sci-Fi", "War", "Western")),
    "entertainment": (0.01, 0.15, 29, 7, ("Musical",)),
    "executive": (0.02, 0.10, 41, 9, ("Crime", "Thriller")),
    "healthcare": (0.02, 0.65, 42, 9, ("Romance", "Drama")),
    "homemaker": (0.01, 0.90, 34, 7, ("Children's", "Musical")),
    "lawyer": (0.01, 0.20, 37, 8, ("Crime", "Mystery")),
    "librarian": (0.06, 0.60, 42, 9, ("Mystery", "Film-Noir", "Fantasy")),
    "marketing": (0.02, 0.35, 38, 8, ("Comedy", "Adventure")),
    "none": (0.01, 0.45, 20, 6, ("Horror",)),
    "other": (0.09, 0.35, 35, 10, ("Adventure",)),
    "programmer": (0.12, 0.06, 31, 7, ("Sci-Fi", "Animation", "Fantasy")),
    "retired": (0.02, 0.10, 66, 5, ("Western", "Musical", "War")),
    "salesman": (0.01, 0.25, 36, 8, ("Action",)),
    "scientist": (0.03, 0.10, 36, 7, ("Documentary", "Sci-Fi")),
    "student": (0.20, 0.33, 22, 3, ("Horror", "Comedy", "Action")),
    "technician": (0.02, 0.05, 33, 8, ("Action", "Sci-Fi")),
    "writer": (0.02, 0.40, 36, 9, ("Film-Noir", "Drama")),
}
WOMEN_LIKE = ("Romance", "Musical", "Children's", "Drama")
MEN_LIKE = ("Action", "War", "Western", "Sci-Fi", "Crime")
YOUNG_LIKE = ("Horror", "Animation", "Action", "Comedy", "Fantasy")
OLD_LIKE = ("Film-Noir", "War", "Western", "Drama", "Documentary")

# How much each part weighs in whether a user watches a film, against standard Gumbel noise.
POPULARITY, GENDER, AGE, OCCUPATION, PERSONAL, STYLE = 1.1, 0.55, 0.8, 0.9, 0.6, 0.8


@dataclass(frozen=True)
class People:
    """(n_users,) each; `occupation` indexes OCCUPATIONS."""

    woman: NDArray[np.bool_]
    age: NDArray[np.int64]
    occupation: NDArray[np.int64]


def obtain(folder: Path, _: Places, __: NoOptions) -> None:
    """Fill `folder` with u.data, u.user, u.item, u.genre, u.occupation, u.info and README; nothing is fetched."""
    rng = np.random.default_rng(SEED)
    people = _people(rng)
    genres = _genres(rng)
    users, items, levels, times = _ratings(rng, people, genres)
    columns = {"user": users + 1, "item": items + 1, "rating": levels, "timestamp": times}
    RATINGS_100K.write(folder, [pl.DataFrame(columns)])
    USERS_100K.write(folder, [_users(people)])
    items_100k(GENRES).write(folder, [_items(rng, genres)])
    note = (
        "SYNTHETIC DATA",
        "",
        f"Generated at random (seed {SEED}) in the file format of MovieLens 100K.",
        "No user, film or rating in it is real, and no result on it says anything about real people.",
    )
    lists = {
        "u.genre": [f"{name}|{number}" for number, name in enumerate(GENRES)] + [""],
        "u.occupation": OCCUPATIONS,
        "u.info": [f"{N_USERS} users", f"{N_ITEMS} items", f"{len(users)} ratings"],
        "README": note,
    }
    for name, lines in lists.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="latin-1")


def _people(rng: np.random.Generator) -> People:
    share, women, age, std, _ = zip(*OCCUPATIONS.values(), strict=True)
    occupation = rng.choice(len(OCCUPATIONS), size=N_USERS, p=np.array(share) / sum(share))
    woman = rng.random(N_USERS) < np.array(women)[occupation]
    ages = np.array(age)[occupation] + np.array(std)[occupation] * rng.standard_normal(N_USERS)
    return People(woman, np.clip(np.round(ages), 13, 80).astype(np.int64), occupation)


def _genres(rng: np.random.Generator) -> NDArray[np.int64]:
    """(n_items, n_genres) 0/1: one to three genres each; the last film's is unknown, as item 267's of ML-100K."""
    flags = np.zeros((N_ITEMS, len(GENRES)), dtype=np.int64)
    order = np.argsort(rng.random((N_ITEMS, len(GENRES) - 1)), axis=1)[:, :3] + 1
    has = np.arange(3) < rng.choice([1, 2, 3], size=N_ITEMS, p=[0.45, 0.4, 0.15])[:, None]
    film, position = np.nonzero(has)
    flags[film, order[film, position]] = 1
    flags[-1] = 0
    flags[-1, 0] = 1
    return flags


def _genre_indicators(*genres: str) -> NDArray[np.float64]:
    return np.isin(GENRES, genres).astype(float)


def _taste(rng: np.random.Generator, people: People) -> NDArray[np.float64]:
    """(n_users, n_genres): what gender, age and occupation make likely, and what is the user's own."""
    sign = np.where(people.woman, 1, -1)[:, None]
    by_gender = sign * (_genre_indicators(*WOMEN_LIKE) - _genre_indicators(*MEN_LIKE))
    years = np.clip((people.age - 37) / 12, -1.5, 1.5)[:, None]
    by_age = years * (_genre_indicators(*OLD_LIKE) - _genre_indicators(*YOUNG_LIKE))
    by_occupation = np.array([_genre_indicators(*likes) for *_, likes in OCCUPATIONS.values()])[people.occupation]
    personal = rng.standard_normal((N_USERS, len(GENRES)))
    return GENDER * by_gender + AGE * by_age + OCCUPATION * by_occupation + PERSONAL * personal


def _ratings(rng: np.random.Generator, people: People, genres: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """users, items, levels and times, (n_ratings,) each, in random order."""
    n_genres = np.sqrt(genres.sum(axis=1))
    liking = (_taste(rng, people)[:, None, :] * genres).sum(axis=2) / n_genres
    style = rng.standard_normal((N_USERS, N_STYLES)), rng.standard_normal((N_ITEMS, N_STYLES))
    liking = liking + STYLE * (style[0][:, None, :] * style[1]).sum(axis=2)
    popularity = -POPULARITY * np.log(rng.permutation(N_ITEMS) + 10.0)

    # Whom a user watches: the Gumbel trick draws without replacement in proportion to exp(utility). Rounding makes
    # the order independent of how a processor rounds the last digits.
    utility = np.round(liking + popularity + rng.gumbel(size=liking.shape), 6)
    extra = rng.lognormal(0, 1, size=N_USERS)
    n_watched = MIN_RATINGS + np.round(extra / extra.mean() * (MEAN_RATINGS - MIN_RATINGS)).astype(np.int64)
    n_watched = np.minimum(n_watched, N_ITEMS // 2)
    watched = np.argsort(-utility, axis=1, kind="stable")
    users, positions = np.nonzero(np.arange(N_ITEMS) < n_watched[:, None])
    items = watched[users, positions]

    quality = 0.6 * rng.standard_normal(N_ITEMS)
    mood = 0.5 * rng.standard_normal(N_USERS)
    score = np.round(0.6 * liking[users, items] + quality[items] + mood[users] + rng.standard_normal(len(users)), 6)
    position = np.argsort(np.argsort(score, kind="stable"), kind="stable") / len(score)
    levels = 1 + np.searchsorted(np.cumsum(RATING_SHARES)[:-1], position, side="right")

    # A user rates in one to four sittings, a film every half minute or so.
    day = rng.integers(0, N_DAYS, size=(N_USERS, 4))[users, rng.integers(0, 4, size=len(users))]
    times = FIRST_DAY + DAY * day + rng.integers(0, DAY // 12, size=len(users))
    order = rng.permutation(len(users))
    return users[order], items[order], levels[order], times[order]


def _users(people: People) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": np.arange(1, N_USERS + 1),
            "age": people.age,
            "gender": np.where(people.woman, "F", "M"),
            "occupation": np.array(list(OCCUPATIONS))[people.occupation],
            "zip_code": "00000",
        }
    )


def _items(rng: np.random.Generator, genres: NDArray[np.int64]) -> pl.DataFrame:
    number = pl.int_range(1, N_ITEMS + 1).cast(pl.String)
    table = pl.DataFrame({"year": rng.integers(1930, 1998, size=N_ITEMS)}).cast(pl.String)
    title = "Synthetic Film N\xba " + number + " (" + pl.col("year") + ")"
    last = pl.int_range(1, N_ITEMS + 1) == N_ITEMS
    return table.select(
        item=number,
        title=pl.when(last).then(pl.lit("Synthetic unknown")).otherwise(title),
        release_date=pl.when(~last).then("01-Jan-" + pl.col("year")),
        video_date=pl.lit(None),
        url=pl.lit(None),
    ).hstack(pl.DataFrame(genres, schema=list(GENRES)))
