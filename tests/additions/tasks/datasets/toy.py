"""A toy data set: synthetic ratings whose taste follows an invented attribute of the users."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tasks.core.contracts import Feature, RatingScale
from tasks.core.raw import write_raw
from tasks.datasets.fetch import NoOptions, Places, Source
from tasks.datasets.files import Column, TextTable

SOURCE = Source(
    name="toy",
    address="",
    synthetic=True,
    holds="about 720 synthetic ratings by 60 users of 40 items, and a colour of each user",
    about=10_000,
    entry="{source: toy, obtain: {}, format: toy, read: {}}",
    licence="SYNTHETIC data: every user, item and rating is drawn at random.",
    terms="Public domain (CC0 1.0).",
)
ObtainOptions = ReadOptions = NoOptions
N_USERS, N_ITEMS = 60, 40
COLOURS = ("blue", "red")
RATINGS = TextTable(
    "ratings.csv",
    {"user": Column(pl.Int64), "item": Column(pl.Int64), "rating": Column(pl.Float32, 1, 5)},
    headed=True,
    unique=("user", "item"),
)
USERS = TextTable(
    "users.csv", {"user": Column(pl.Int64), "colour": Column(values=COLOURS)}, headed=True, unique=("user",)
)
OWN, OTHER = 0.4, 0.2
"""Probability that a user rates an item of the own colour, and one of the other."""


def obtain(folder: Path, places: Places, options: NoOptions) -> None:
    """Write ratings.csv and users.csv; nothing is fetched."""
    del places, options
    rng = np.random.default_rng(2026)
    colours = rng.integers(0, 2, N_USERS)
    likes = np.where(colours[:, None] == np.arange(N_ITEMS) % 2, OWN, OTHER)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < likes)
    ratings = rng.integers(1, 6, len(users)).astype(np.float32)
    RATINGS.write(folder, [pl.DataFrame({"user": users, "item": items, "rating": ratings})])
    names = [COLOURS[colour] for colour in colours]
    USERS.write(folder, [pl.DataFrame({"user": np.arange(N_USERS), "colour": names})])


def convert(folder: Path, place: Path, options: NoOptions) -> None:
    """Write the raw tables (`tasks.core.raw.RAW_COLUMNS`) into `place`.

    Raises:
        DataError: a file is missing or malformed; a rating or colour is not allowed, or a pair or user repeated.
    """
    del options
    write_raw(
        place,
        {
            "interactions": RATINGS.read(folder).with_columns(timestamp=pl.lit(None, pl.Int64)),
            "users": USERS.read(folder),
        },
        features=(Feature(name="colour", kind="categorical", categories=COLOURS, sensitive=True),),
        scale=RatingScale(low=1, high=5, step=1),
        unique_pairs=True,
    )
