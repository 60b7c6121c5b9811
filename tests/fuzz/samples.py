"""A small, valid example of everything that is read from outside: what is fuzzed.

The files are those of the formats' own tests. All people in them are made up.
"""

import io
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tasks.config import params, references
from tasks.config.tasks import resolve
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.raw import read_raw
from tasks.datasets import FORMATS, custom, glove
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions
from tests.datasets import (
    formats,
    test_custom,
    test_foursquare_twitter_text,
    test_glove,
    test_ione,
    test_movielens,
    test_netflix,
    test_tmall,
    test_weibo,
    test_yelp,
    test_yelp_hin,
)

ROOT = Path(__file__).resolve().parents[2]
UNCHECKED = {"ciao", "epinions", "foursquare_twitter"}
"""MATLAB and Parquet files, read after their checksums: on a corrupt MATLAB file scipy may end the process."""
Read = Callable[[Path, Path], object]


@dataclass(frozen=True)
class Sample:
    """Files, and what reads them."""

    files: Mapping[str, bytes]
    read: Read
    """(folder of the files, empty folder to write into) -> anything; raises `refusal` for files that are wrong."""
    refusal: type[Exception] = DataError


def converted(module: Any, options: Any, folder: Path, place: Path) -> None:
    """As the stage `convert` does it."""
    module.convert(folder, place, options)
    read_raw(place)


def text(files: Mapping[str, Any], encoding: str = "utf-8") -> dict[str, bytes]:
    """Files of texts, of lines or of bytes."""
    lines = {name: "\n".join(value) + "\n" if isinstance(value, list) else value for name, value in files.items()}
    return {name: value if isinstance(value, bytes) else value.encode(encoding) for name, value in lines.items()}


def parquet(table: pl.DataFrame) -> bytes:
    """A Parquet file; a compressed one would be refused for its checksum."""
    out = io.BytesIO()
    table.write_parquet(out, compression="uncompressed")
    return out.getvalue()


def _custom() -> dict[str, Sample]:
    csv = text(test_custom.FILES)
    tables = {name.replace("csv", "parquet"): parquet(pl.read_csv(content)) for name, content in csv.items()}
    open_ended = test_custom.options()
    assert open_ended.users is not None
    features = [feature.model_copy(update={"low": None, "high": None}) for feature in open_ended.users.features]
    features = [feature.model_copy(update={"categories": None}) for feature in features]
    users = open_ended.users.model_copy(update={"features": features})
    options = {"custom": open_ended, "custom, no bounds": open_ended.model_copy(update={"users": users})}
    samples = {name: Sample(csv, partial(converted, custom, chosen)) for name, chosen in options.items()}
    return samples | {"custom, parquet": Sample(tables, partial(converted, custom, options["custom, no bounds"]))}


_MEMBER = "content of {}\n" + "more of it\n" * 5


def _archive() -> Sample:
    """Two members that are read, two that are not."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("a/wanted", "a/also", "a/other", "b"):
            made.writestr(name, _MEMBER.format(name))

    def read(folder: Path, place: Path) -> None:
        unpack(folder / "set.zip", place, {"a/wanted": None, "a/also": None})
        for name in ("wanted", "also"):
            assert (place / name).read_bytes() == _MEMBER.format(f"a/{name}").encode()

    return Sample({"set.zip": out.getvalue()}, read)


def _params() -> Sample:
    """The root's params.yaml with what the demo needs, and the demo's own files."""
    root = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    needed = {"datasets": {"demo"}, "processed": {"demo"}, "perturbed": set(), "words": set()}
    demo = (ROOT / "suites/demo").glob("*.yaml")
    files = {f"suites/demo/{path.name}": path.read_bytes() for path in demo if path.name != "dvc.yaml"}
    own = yaml.safe_load(files["suites/demo/params.yaml"])
    needed["perturbed"] = {
        entry["features"].partition("/")[2] for entry in own["experiments"].values() if "features" in entry
    }
    kept = {
        section: {key: root[section][key] for key in root[section] if key in keys} for section, keys in needed.items()
    }
    files["params.yaml"] = yaml.safe_dump(kept, sort_keys=False).encode()

    def read(folder: Path, place: Path) -> None:
        del place
        path = folder / "params.yaml"
        references.check(params.load(path), path)

    return Sample(files, read, ConfigurationError)


@cache
def samples() -> dict[str, Sample]:
    """By name; for each of `FORMATS` but those of `UNCHECKED` there is one whose name begins with it."""
    official = {name: content for name, content in test_tmall.FILES.items() if name != test_tmall.FRAGMENT}
    fragment = {test_tmall.FRAGMENT: test_tmall.FILES[test_tmall.FRAGMENT]}
    without_times = test_movielens.SMALL["ml_1m"] | {"ratings.dat": test_movielens.NO_TIMES}
    of_formats = {
        "foursquare_twitter_text": (text(test_foursquare_twitter_text.FILES), NoOptions()),
        "ione": (text(test_ione.FILES), NoOptions()),
        "ml_100k": (text(test_movielens.SMALL["ml_100k"], "latin-1"), NoOptions()),
        "ml_1m": (text(test_movielens.SMALL["ml_1m"], "latin-1"), test_movielens.SECONDS),
        "ml_1m, no times": (text(without_times, "latin-1"), test_movielens.ORDER),
        "ml_20m": (text(test_movielens.SMALL["ml_20m"]), NoOptions()),
        "netflix": (text(test_netflix.FILES), NoOptions()),
        "tmall": (text(official), test_tmall.OFFICIAL),
        "tmall, small": (text(fragment), test_tmall.SMALL),
        "weibo": (text(test_weibo.FILES), NoOptions()),
        "yelp": (text(test_yelp.FILES), test_yelp.EVERYTHING),
        "yelp, strict": (text(test_yelp.FILES), test_yelp.STRICT),
        "yelp_hin": (text(test_yelp_hin.FILES), test_yelp_hin.ORDER),
    }
    by_name = {
        name: Sample(files, partial(converted, resolve(FORMATS[name.partition(",")[0]]), options))
        for name, (files, options) in of_formats.items()
    }
    by_name["glove"] = Sample(text({"glove.txt": test_glove.LINES}), lambda folder, _: glove.read(folder / "glove.txt"))
    return by_name | _custom() | {"archive": _archive(), "params": _params()}


def write(sample: Sample, folder: Path) -> None:
    """Write the files of a sample into a folder, which is made again."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in sample.files.items():
        formats.write(folder, name, content)
