"""What data sets there are, in what state, and whether what the user placed is right: `dprec data` and `dprec init`.

No stage of the pipeline: nothing depends on what is written here, and it is removed again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
import yaml

from tasks.config.messages import options
from tasks.config.params import Dataset, load
from tasks.config.tasks import resolve
from tasks.core.contracts import RatingScale
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.raw import RawTables, read_raw
from tasks.datasets import FORMATS, SOURCES
from tasks.datasets.custom import MOST_LEVELS, level_of
from tasks.datasets.fetch import FormFile, Places, RemoteFile, Source, verify
from tasks.pipeline.common import CHECKPOINTS, RAW
from tasks.quality.raw import raw_tables
from tasks.quality.rules import Table
from tasks.stages.convert import shown_as_own
from tasks.stages.download import places, source_of

State = Literal[
    "present", "generated", "placed", "in the mirror", "in the mirror, perhaps", "downloadable", "needs a form", "yours"
]


@dataclass(frozen=True)
class Known:
    """A data set that dprec can obtain, as it stands in this project."""

    source: Source
    names: tuple[str, ...]
    """What commands call it: its names in params.yaml, or the source's own where it is not there."""
    state: State
    next_step: str


def listing() -> list[Known]:
    """All sources, in the order of the registry; real ones first.

    Raises:
        ConfigurationError: params.yaml is not valid.
    """
    datasets = load().datasets
    sources: dict[str, tuple[Source, list[str]]] = {}
    for key, target in SOURCES.items():
        module = resolve(target)
        sources[module.SOURCE.name] = (module.SOURCE, [])
        for name, dataset in datasets.items():
            if dataset.source == key:  # the same data set, or another one that the module can obtain
                *_, source = source_of(name, dataset)
                sources.setdefault(source.name, (source, []))[1].append(name)
    listed = []
    for source, names in sources.values():
        state = _state(source, names, places())
        listed.append(Known(source, tuple(names or [source.name]), state, _next_step(source, names, state)))
    return sorted(listed, key=lambda checked: checked.source.synthetic)


def are_obtainable(names: Iterable[str], datasets: dict[str, Dataset]) -> bool:
    """Whether all these data sets are got without a user's help: generated, or given out without a form."""
    for name in names:
        *_, source = source_of(name, datasets[name])
        if not source.synthetic and not (source.files and all(isinstance(file, RemoteFile) for file in source.files)):
            return False
    return True


def _state(source: Source, names: Sequence[str], where: Places) -> State:
    if any((RAW / name / "source.json").is_file() for name in names):
        return "present"
    if source.synthetic:
        return "generated"
    if not source.files:
        return "yours"
    if all((where.placed / file.name).is_file() for file in source.files):
        return "placed"
    if where.mirror_address:
        return "in the mirror, perhaps"
    folder = where.mirror_folder
    if folder and all(os.path.isfile(folder / file.mirror_path) for file in source.files):
        return "in the mirror"
    return "needs a form" if any(isinstance(file, FormFile) for file in source.files) else "downloadable"


def _next_step(source: Source, names: Sequence[str], state: State) -> str:
    if state == "present":
        return "nothing"
    if state == "needs a form":
        return f"`dprec data verify {[*names, source.name][0]}` says where, what, and where to put it"
    if state == "yours":
        return "docs/custom-data.md"
    if not names:
        return f"`dprec data verify {source.name}` looks at it and shows its line for params.yaml"
    if state == "placed":
        return f"`dprec data verify {names[0]}`"
    return f"`dvc repro data/dvc.yaml:check-raw@{names[0]}`"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    verdict: str
    right: bool


def inspect(name: str) -> Iterator[Finding]:
    """Look at everything that is known of a data set before it is used, one finding at a time.

    Each file: is it there, has it the published size and checksum, where these are known. Then the whole of it is read
    and its tables are held against their expectations, as the pipeline will.

    name: of params.yaml's `datasets`, or of a source.

    Raises:
        ConfigurationError: there is no such data set.
        ByHandError: a file has to be fetched by hand (three lines: where, what, where to put it).
        DataError: the files cannot be read (one line).
    """
    dataset = _dataset(name)
    *_, source = source_of(name, dataset)
    for file in source.files:
        if finding := _file(file, places()):
            yield finding
            if not finding.right:
                return
    with tables_of(name, dataset) as (raw, loaded):
        yield Finding("files", f"{sum(1 for file in raw.rglob('*') if file.is_file())} files are there", True)
        yield from _rows(loaded, "")
        yield from _check_tables(raw_tables(loaded), raw.with_name("docs"))
    if name not in load().datasets:
        yield Finding("params.yaml", f"not there yet; under datasets: `{name}: {source.entry}`", True)


@contextmanager
def tables_of(name: str, dataset: Dataset) -> Iterator[tuple[Path, RawTables]]:
    """A data set's files and tables, obtained and read as the pipeline does, and removed again.

    Raises:
        ByHandError: a file has to be fetched by hand (three lines: where, what, where to put it).
        DataError: the files cannot be read (one line).
    """
    module, chosen, _ = source_of(name, dataset)
    with suppress(PermissionError):
        CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    folder = CHECKPOINTS if os.access(CHECKPOINTS, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder, prefix=f"verify-{name}-") as scratch:
        raw, tables, docs = (Path(scratch) / part for part in ("raw", "tables", "docs"))
        for part in (raw, tables, docs):
            part.mkdir()
        module.obtain(raw, places(), chosen)
        format_ = resolve(FORMATS[dataset.format])
        read = options(format_.ReadOptions, dataset.read, f"datasets.{name}.read")
        format_.convert(shown_as_own(raw, dataset), tables, read)
        yield raw, read_raw(tables)


def scale_of(ratings: pl.Series) -> dict[str, float] | None:
    """`low`, `high` and `step` of ratings that lie on a scale; None: they are all the same, or on none."""
    levels = ratings.unique().sort()
    if not 2 <= len(levels) <= 101:
        return None
    low, high, gap = float(levels[0]), float(levels[-1]), float(levels.diff().drop_nulls().min())  # type: ignore[arg-type]
    steps = (high - low) / gap
    if steps >= MOST_LEVELS:
        return None
    scale = RatingScale(low=low, high=high, step=(high - low) / round(steps))
    on_scale = levels.to_frame("rating").select(level_of(pl.col("rating"), scale)).to_series()
    return None if on_scale.has_nulls() else scale.model_dump()


def _rows(raw: RawTables, prefix: str) -> Iterator[Finding]:
    for table in raw.schema.tables:
        rows = raw.scan(table).select(pl.len()).collect().item()
        yield Finding(f"table {prefix}{table}", f"{rows:,} rows", True)
    for network in raw.schema.networks:
        yield from _rows(raw.network(network), f"{network}/")


def _check_tables(tables: list[Table], docs: Path) -> Iterator[Finding]:
    from tasks.quality.runner import run

    verdict = run("raw", "verify", tables, {}, docs)
    for result in verdict["results"]:
        if not result["success"]:
            column = f", column {result['column']}" if result["column"] else ""
            yield Finding(f"table {result['table']}{column}", result["detail"], False)
    if verdict["success"]:
        yield Finding("expectations", f"all {verdict['evaluated']} are met", True)


def _file(file: RemoteFile | FormFile, where: Places) -> Finding | None:
    path = where.placed / file.name
    if not path.is_file():
        return None  # a mirror or a download: `obtain` says what it cannot get
    try:
        if isinstance(file, FormFile):
            verify(path, file)
    except DataError as error:
        return Finding(f"file {path}", str(error), False)
    checked = isinstance(file, FormFile) and file.sha256 is not None
    what = "is the published one" if checked else "is there; its checksum is not known, its content is looked at"
    return Finding(f"file {path}", f"{path.stat().st_size:,} bytes, {what}", True)


def _dataset(name: str) -> Dataset:
    datasets = load().datasets
    if name in datasets:
        return datasets[name]
    for target in SOURCES.values():
        source: Source = resolve(target).SOURCE
        if source.name == name:
            return Dataset.model_validate(yaml.safe_load(source.entry))
    raise ConfigurationError(f"unknown data set {name!r}; `dprec data list` shows all")
