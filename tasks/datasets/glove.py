"""GloVe (Pennington, Socher and Manning, EMNLP 2014): where the word vectors come from, and how their text reads.

Not a data set of users and items: the stage `embed` takes the file as it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.datasets.fetch import FormFile
from tasks.datasets.text import BLOCK, allow, blocks, parse, require_unique

WIDTH = 50
"""Numbers per word."""
FILE = FormFile(
    name="glove.6B.50d.txt",
    page="https://nlp.stanford.edu/projects/glove/",
    what="glove.6B.zip (Wikipedia 2014 and Gigaword 5), of it glove.6B.50d.txt, unpacked",
    mirror_path="glove/glove.6B.50d.subset.txt",
)
"""Neither size nor checksum is asked for: a part of the file, a line per word, is as good where it has the words."""
LICENCE = "GloVe word vectors, Public Domain Dedication and License 1.0."
_LINE: dict[str, type[pl.DataType]] = {"word": pl.String} | {f"number {n}": pl.Float64 for n in range(1, WIDTH + 1)}


def read(path: Path, *, size: int = BLOCK) -> tuple[list[str], NDArray[np.float64]]:
    """The words in the order of the file, the most frequent first, and their vectors: (n_words, WIDTH) float64.

    Args:
        size: bytes of the file that are parsed at a time.

    Raises:
        DataError: the file is missing, empty or not UTF-8; a line has not one word and `WIDTH` finite numbers, or a
            word that another line has (names the line).
    """
    words, vectors = [], []
    for line, lines in blocks(path, size=size):
        table = parse(path, lines, " ", _LINE, first_line=line)
        for column in list(_LINE)[1:]:
            allow(path, table, column, pl.col(column).is_finite(), "a finite number", line, complete=False)
        words.append(table["word"])
        vectors.append(table.drop("word").to_numpy())
    every = pl.concat(words)
    require_unique(path, every.to_frame(), ["word"])
    return every.to_list(), np.vstack(vectors)
