"""MovieLens Latest (small) (Harper & Konstan, 2015): where it comes from, in the format of MovieLens 20M.

It is a source of its own because what a source is called decides which printed numbers stand beside its results.
"""

from __future__ import annotations

from pathlib import Path

from tasks.datasets import ml_20m
from tasks.datasets.fetch import NoOptions, Places, RemoteFile

RELEASE = ml_20m.Release(
    archive=RemoteFile(
        address="https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
        size=978_202,
        md5=None,
        sha256="696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
        mirror_path="ml-latest-small/ml-latest-small.zip",
    ),
    holds="100,836 ratings in half stars by 610 users of 9,724 films (September 2018); nothing about the users",
    ratings=100_836,
    members={
        "ml-latest-small/README.txt": None,
        "ml-latest-small/movies.csv": "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
        "ml-latest-small/ratings.csv": "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
    },
)
SOURCE = ml_20m.release_source(
    "ml-latest-small",
    RELEASE,
    "{source: ml_latest_small, obtain: {}, format: ml_20m, read: {}}",
    "MovieLens Latest (small), " + ml_20m.LICENCE.format(redistribution="under the same conditions"),
)
ObtainOptions = NoOptions


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """See `ml_20m.obtain_release`."""
    ml_20m.obtain_release(folder, places, RELEASE)
