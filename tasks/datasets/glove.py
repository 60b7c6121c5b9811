"""GloVe (Pennington, Socher and Manning, EMNLP 2014): where the word vectors come from, and how their text reads.

Not a data set of users and items: the stage `embed` takes the file as it is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.datasets.archive import unpack
from tasks.datasets.fetch import FormFile, Places, RemoteFile, local_file
from tasks.datasets.files import Column, TextTable
from tasks.datasets.text import require_unique

WIDTH = 50
"""Numbers per word."""
FILE = FormFile(
    name="glove.6B.50d.txt",
    page="https://nlp.stanford.edu/projects/glove/",
    what="glove.6B.zip (Wikipedia 2014 and Gigaword 5), of it glove.6B.50d.txt, unpacked",
    mirror_path="glove/glove.6B.50d.subset.txt",
)
"""Neither size nor checksum is asked for: a part of the file, a line per word, is as good where it has the words."""
ARCHIVE = RemoteFile(
    address="https://nlp.stanford.edu/data/glove.6B.zip",
    size=862_182_613,
    sha256="617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
    mirror_path="glove/glove.6B.zip",
)
UNPACKED = 4 << 30
"""Most bytes of all that the archive holds; 2.3 GB are published."""
LICENCE = "GloVe word vectors, Public Domain Dedication and License 1.0."
ORIGIN = {"name": FILE.name, "address": FILE.page, "licence": LICENCE}
"""What is said of the file where its vectors were taken."""
_LARGEST = sys.float_info.max
_FINITE = Column(pl.Float64, -_LARGEST, _LARGEST, what="a finite number")
_LINES = TextTable(
    FILE.name,
    {"word": Column()} | {f"number {n}": _FINITE for n in range(1, WIDTH + 1)},
    " ",
)


@contextmanager
def local(places: Places) -> Iterator[Path]:
    """Yield a local path of `FILE`: the placed one or the mirror's, else that of the official archive.

    Raises:
        ByHandError, DataError: as in `tasks.datasets.fetch.local_file`.
    """
    if places.mirror or (places.placed / FILE.name).is_file():
        with local_file(FILE, places) as path:
            yield path
        return
    with local_file(ARCHIVE, places) as archive, tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        unpack(archive, Path(folder), {FILE.name: None}, max_bytes=UNPACKED)
        yield Path(folder) / FILE.name


def read(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """The words in the order of the file, the most frequent first, and their vectors: (n_words, WIDTH) float64.

    Raises:
        DataError: the file is missing, empty or not UTF-8; a line has not one word and `WIDTH` finite numbers, or a
            word that another line has (names the line).
    """
    table = pl.concat([lines for _, lines in replace(_LINES, name=path.name).batches(path.parent)])
    require_unique(path, table, ["word"])
    return table["word"].to_list(), table.drop("word").to_numpy()
