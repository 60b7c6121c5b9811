"""Replicas as tests make them: generated, and read by the format of the data set that they imitate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.config.tasks import resolve
from tasks.datasets import FORMATS, SOURCES
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic import movielens, netflix, tmall, trust, yelp
from tasks.datasets.synthetic.generator import Description
from tasks.raw import RawTables, read_raw

YELP = {"users": True, "businesses": True, "friends": True, "outsiders": "refuse"}
REPLICAS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "ml-100k": ("twin_movielens", {"layout": "ml-100k"}, "ml_100k", {}),
    "ml-1m": ("twin_movielens", {"layout": "ml-1m"}, "ml_1m", {"time": "seconds"}),
    "ml-20m": ("twin_movielens", {"layout": "ml-20m"}, "ml_20m", {}),
    "ml-latest-small": ("twin_movielens", {"layout": "ml-latest-small"}, "ml_20m", {}),
    "netflix": ("twin_netflix", {"layout": "combined"}, "netflix", {}),
    "netflix, a file per movie": ("twin_netflix", {"layout": "training_set"}, "netflix", {}),
    "tmall": ("twin_tmall", {}, "tmall", {"layout": "official"}),
    "yelp": ("twin_yelp", {"layout": "yelp"}, "yelp", YELP),
    "yelp-hin": ("twin_yelp", {"layout": "yelp-hin"}, "yelp_hin", {"time": "none"}),
    "ciao": ("twin_trust", {"layout": "ciao", "release": "plain"}, "ciao", {}),
    "ciao, timed": ("twin_trust", {"layout": "ciao", "release": "timestamps"}, "ciao", {}),
    "epinions": ("twin_trust", {"layout": "epinions", "release": "plain"}, "epinions", {}),
    "epinions, timed": ("twin_trust", {"layout": "epinions", "release": "timestamps"}, "epinions", {}),
    "weibo": ("twin_weibo", {}, "weibo", {}),
    "foursquare-twitter": ("twin_foursquare_twitter", {}, "foursquare_twitter_text", {}),
}
"""Name -> source, its options, format, its options."""
DESCRIBED: Mapping[str, Description] = {
    **movielens.LAYOUTS, "netflix": netflix.NETFLIX, "tmall": tmall.TMALL, **yelp.LAYOUTS, **trust.LAYOUTS,
}  # fmt: skip


def generated(folder: Path, name: str, scale: float, seed: int = 4, **more: Any) -> Path:
    """The files of a replica, in `folder`."""
    source, options, _, _ = REPLICAS[name]
    module = resolve(SOURCES[source])
    folder.mkdir(parents=True)
    chosen = module.ObtainOptions.model_validate({**options, "scale": scale, "seed": seed, **more})
    module.obtain(folder, Places(None, folder, folder), chosen)
    return folder


def converted(folder: Path, name: str) -> RawTables:
    """The raw tables of the files in `folder`, next to it."""
    _, _, format_, read = REPLICAS[name]
    module = resolve(FORMATS[format_])
    place = folder.with_name(f"{folder.name}-tables")
    place.mkdir()
    module.convert(folder, place, module.ReadOptions.model_validate(read))
    return read_raw(place)


def content(folder: Path) -> dict[str, bytes]:
    """Path of each file below `folder` -> what is in it."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
