"""Users' attributes in words: what every value of an attribute is called, so that it can have a word's vector.

DP-VAE (paper section 3.3.1) takes "the embeddings of user metadata" and does not say which words it looks up. Here a
category is called what it is called (F and M: female and male), an age by the bands it touches, and any other number by
the third of its range that it lies in. That range must be public: the ends of the thirds of a range that is read off
the data would move with one user, and with them the vectors of all others, which private training takes as their
own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.contracts import Feature
from tasks.core.errors import DataError
from tasks.datasets.encoding import UNKNOWN, classes

AGE = "age"
AGE_BANDS = {0: "child", 13: "teen", 20: "young", 35: "adult", 46: "older", 65: "elderly"}
"""First age of a band -> its word; all in GloVe. 35 and 46 are where GERAI's age groups end (docs/methods.md §2)."""
THIRDS = ("low", "medium", "high")
SPELT = {"gender": {"f": "female", "m": "male"}, "sex": {"f": "female", "m": "male"}}
"""Attribute -> what its abbreviations mean."""
_AGES = re.compile(r"(?:(over|above|>)|(under|below|<))[ -]?(\d{1,3})|(\d{1,3})(?:(\+)| ?[-–] ?(\d{1,3}))?")
_OLDEST = 999
_NAMES, _ANY = re.compile(r"[^\W\d_]{2,}"), re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Attribute:
    """An attribute whose values are words."""

    name: str
    values: tuple[str, ...]
    """Categories, or the bands of a number."""
    words: tuple[tuple[str, ...], ...]
    """Of every value, one or more, in lower case."""
    codes: NDArray[np.int64]
    """(n_users,) position of each user's value."""

    def users_with(self, word: str) -> NDArray[np.bool_]:
        """(n_users,) whose value is called by `word`, among others."""
        return np.array([word in words for words in self.words])[self.codes]


def attribute(feature: Feature, users: pl.DataFrame) -> Attribute:
    """An attribute of all users in words.

    Args:
        feature: numbers have both bounds; those of any but ages are public.
        users: users table with ids dense from 0, in any row order.

    Raises:
        DataError: a category is unknown, user ids are not 0..n-1, or the thirds of a number would follow from the
            data.
    """
    if feature.kind == "categorical":
        [codes] = classes(users, (feature,)).values()
        if feature.unknown is not None:
            codes = np.where(codes == UNKNOWN, feature.categories.index(feature.unknown), codes)
        called = tuple(category_words(feature.name, category) for category in feature.categories)
        return Attribute(feature.name, feature.categories, called, codes)
    numbers = users.sort("user")[feature.name].cast(pl.Float64).to_numpy()
    if feature.name == AGE:
        values = tuple(AGE_BANDS.values())
        codes = np.searchsorted(list(AGE_BANDS), numbers, side="right") - 1
    else:
        assert feature.low is not None, "check-processed asks for bounds"
        assert feature.high is not None, "check-processed asks for bounds"
        if feature.bounds == "fitted":
            raise DataError(
                f"users: {feature.name!r} has the data's own minimum and maximum for bounds, so that one user moves "
                "the words of all others; give it bounds that are known without the data (of your own data: `low` and "
                "`high` in params.yaml), or a protocol that leaves it out"
            )
        values = THIRDS
        ends = np.linspace(feature.low, feature.high, len(THIRDS) + 1)[1:-1]
        codes = np.searchsorted(ends, numbers, side="right")
    codes = codes.clip(0).astype(np.int64)
    return Attribute(feature.name, values, tuple((value,) for value in values), codes)


def category_words(name: str, category: str) -> tuple[str, ...]:
    """The words that a category of the attribute `name` is called by, each once; at least one.

    Those are its names of two letters and more; where it has none, what stands between signs; else the text itself.
    """
    text = category.strip().lower()
    if name == AGE and (bands := age_words(text)):
        return bands
    if spelt := SPELT.get(name, {}).get(text):
        return (spelt,)
    return tuple(dict.fromkeys(_NAMES.findall(text) or _ANY.findall(text) or [text]))


def age_words(text: str) -> tuple[str, ...]:
    """The words of all bands that a group of ages touches (`35-44`, `under-18`, `over 45`, `56+`, `23`).

    Empty where the text names no ages.
    """
    match = _AGES.fullmatch(text)
    if not match:
        return ()
    above, _, limit, first, more, last = match.groups()
    if limit is not None:
        low, high = (int(limit) + 1, _OLDEST) if above else (0, int(limit) - 1)
    else:
        low, high = int(first), _OLDEST if more else int(last or first)
    starts = list(AGE_BANDS)
    ends = [start - 1 for start in starts[1:]] + [_OLDEST]
    return tuple(
        word for (start, word), end in zip(AGE_BANDS.items(), ends, strict=True) if start <= high and low <= end
    )
