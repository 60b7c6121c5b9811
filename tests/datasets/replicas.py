"""Replicas as tests make them: generated, and read by the format of the data set that they imitate."""

from pathlib import Path
from typing import Any

from tasks.config.tasks import resolve
from tasks.core.raw import RawTables
from tasks.datasets import FORMATS, SOURCES
from tasks.datasets.fetch import Places
from tasks.datasets.synthetic.generator import Description, Replica
from tests.datasets import formats

YELP = {"users": True, "businesses": True, "friends": True, "outsiders": "refuse"}
REPLICAS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "ml-1m": ("twin_movielens", {"layout": "ml-1m"}, "ml_1m", {"time": "seconds"}),
    "ml-20m": ("twin_movielens", {"layout": "ml-20m"}, "ml_20m", {}),
    "netflix": ("twin_netflix", {"layout": "combined"}, "netflix", {}),
    "tmall": ("twin_tmall", {}, "tmall", {"layout": "official"}),
    "yelp": ("twin_yelp", {"layout": "yelp"}, "yelp", YELP),
    "ciao": ("twin_trust", {"layout": "ciao", "release": "plain"}, "ciao", {}),
    "ciao, timed": ("twin_trust", {"layout": "ciao", "release": "timestamps"}, "ciao", {}),
    "epinions": ("twin_trust", {"layout": "epinions", "release": "plain"}, "epinions", {}),
    "epinions, timed": ("twin_trust", {"layout": "epinions", "release": "timestamps"}, "epinions", {}),
    "weibo": ("twin_weibo", {}, "weibo", {}),
    "foursquare-twitter": ("twin_foursquare_twitter", {}, "foursquare_twitter_text", {}),
}
"""Name -> source, its options, format, its options."""


def replica(name: str) -> Replica:
    source: Replica = resolve(SOURCES[REPLICAS[name][0]])
    return source


def described(name: str) -> Description:
    layout: Description = replica(name).layouts[REPLICAS[name][1].get("layout", "")]
    return layout


def generated(folder: Path, name: str, scale: float, seed: int = 4, **more: Any) -> Path:
    folder.mkdir(parents=True)
    chosen = replica(name).ObtainOptions.model_validate({**REPLICAS[name][1], "scale": scale, "seed": seed, **more})
    replica(name).obtain(folder, Places(None, folder, folder), chosen)
    return folder


def converted(folder: Path, name: str) -> RawTables:
    _, _, format_, read = REPLICAS[name]
    module = resolve(FORMATS[format_])
    return formats.converted(module, folder, module.ReadOptions.model_validate(read))
