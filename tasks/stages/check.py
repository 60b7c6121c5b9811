"""Stage `check`: do the tables of one contract hold what they promise? `python -m tasks.stages.check LAYER/NAME`.

Writes data/quality/<layer>/<name>.json (the verdict) and data/quality/<layer>/<name>/ (browsable data docs), also when
the check fails; it then ends with exit code 1, so that DVC runs nothing that depends on the data. Of files that are not
there or cannot be read it leaves no verdict. Recommendations that pass leave a summary in
data/runs/<suite>/<name>/checked.json, alignments in data/runs/<suite>/alignments/<name>.json: it is what makes the
suite's report wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tasks.config.fields import AnyNetworks, PerturbedFeatures
from tasks.config.params import Experiment, Params, Suite, entry, load
from tasks.config.tasks import TASKS, measured_by, resolve
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DamagedError, DataError
from tasks.core.raw import read_raw
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import (
    INTERIM,
    PERTURBED,
    PROCESSED,
    QUALITY,
    RUNS,
    SUMMARY,
    WORDS,
    address,
    atomic_write,
    file_digest,
    remove,
    write_json,
)
from tasks.quality.metrics import measurements, metric_tables
from tasks.quality.perturbed import perturbed_features, perturbed_network, perturbed_tables, released_features
from tasks.quality.processed import processed_tables
from tasks.quality.raw import raw_tables
from tasks.quality.releases import word_tables
from tasks.quality.rules import Table, file_table
from tasks.stages.checks import embedding
from tasks.stages.checks.subject import Subject, require_types

if TYPE_CHECKING:
    from tasks.config.networks import Alignment, NetworkEmbeddings
    from tasks.core.rows import Row

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises in the middle of a table whose pages are damaged."""


def main(name: str) -> None:
    """Check `LAYER/NAME`.

    Raises:
        ConfigurationError: there is no such layer, or no such name in it.
        DataError: a file is not there or cannot be read, or a rule is broken (names the first).
    """
    from tasks.quality.runner import run

    layer, _, key = name.partition("/")
    if layer not in LAYERS:
        raise ConfigurationError(f"unknown layer {layer!r}; known: {', '.join(f'{each}/NAME' for each in LAYERS)}")
    params = load()
    subject, docs = LAYERS[layer](key, params), QUALITY / layer / key
    written, passed = QUALITY / layer / f"{key}.json", passed_file(layer, key, params)
    for former in filter(None, (written, passed)):
        remove(former)
    for file in subject.files:
        if not file.is_file():
            of_suites: dict[str, Mapping[str, NetworkEmbeddings | Alignment | Experiment]] = {
                "embeddings": params.embeddings,
                "aligned": params.aligned,
                "recommendations": params.experiments,
            }
            suite = key if layer == "metrics" else of_suites[layer][key].suite if layer in of_suites else None
            stage = address(f"check-{layer}@{key}", suite)
            raise DataError(f"{file}: is not there, so there is nothing to check; `dvc repro {stage}` makes it first")
    checked = {file.as_posix(): file_digest(file) for file in subject.files}
    try:
        tables = [file_table(checked), *subject.tables()]
        with atomic_write(written) as verdict_file, atomic_write(docs) as target:
            target.mkdir()
            verdict = run(layer, key, tables, checked, target)
            # without the words of rules that are met: what depends on a verdict stays as it is where they change
            results = [each | {"detail": ""} if each["success"] else each for each in verdict["results"]]
            write_json(verdict_file, verdict | {"results": results})
    except UNREADABLE:
        require_readable(subject.files)
        raise
    if not verdict["success"]:
        raise DataError(f"{first_failure(verdict)}; see {docs / 'index.html'}")
    if passed:
        with atomic_write(passed) as target:
            write_json(target, {name: verdict[name] for name in SUMMARY})


def passed_file(layer: str, key: str, params: Params) -> Path | None:
    """Where the summary of a check lies that passed, for layers that a suite's report waits for."""
    if layer == "recommendations":
        return RUNS / params.experiments[key].suite / key / "checked.json"
    if layer == "aligned":
        return RUNS / params.aligned[key].suite / "alignments" / f"{key}.json"
    return None


def require_readable(files: list[Path]) -> None:
    """Read Parquet files to their end.

    Raises:
        DataError: names the first that cannot be read.
    """
    for file in files:
        if file.suffix == ".parquet":
            try:
                for _ in pl.scan_parquet(file).collect_batches(engine="streaming"):
                    pass
            except UNREADABLE as error:
                raise DamagedError(f"{file}: cannot be read ({error}); delete it and run its stage again") from error


def first_failure(verdict: Row) -> str:
    """One line: the table, column, rule, how many rows break it and which first."""
    first, *others = (result for result in verdict["results"] if not result["success"])
    column = f", column {first['column']}" if first["column"] else ""
    further = f"; {len(others)} others failed" if others else ""
    return f"table {first['table']}{column} {first['detail']}{further}"


def raw_subject(key: str, params: Params) -> Subject:
    """Raw tables of a data set."""
    entry("datasets", key, params.datasets)
    return Subject(_files(INTERIM / key), lambda: raw_tables(read_raw(INTERIM / key)))


def processed_subject(key: str, params: Params) -> Subject:
    """Tables of a data set under a protocol."""
    entry("processed", key, params.processed)

    def tables() -> list[Table]:
        contents = contracts.read_processed(PROCESSED / key)
        require_types(contents)
        return processed_tables(contents)

    return Subject(_files(PROCESSED / key), tables)


def _files(folder: Path) -> list[Path]:
    """All of a folder's; of one without any the schema that it should have."""
    return sorted(file for file in folder.rglob("*") if file.is_file()) or [folder / "schema.json"]


def perturbed_subject(key: str, params: Params) -> Subject:
    """Perturbed features, every budget and seed, or networks, every setting and seed."""
    release = entry("perturbed", key, params.perturbed)
    if not isinstance(release, PerturbedFeatures):
        return _perturbed_networks(PERTURBED / key, release)
    folder = PERTURBED / key
    files = {
        (epsilon, seed): folder / f"epsilon={epsilon:g}" / f"seed-{seed}.parquet"
        for epsilon in release.epsilon
        for seed in release.seeds
    }

    def tables() -> list[Table]:
        schema = contracts.read_schema(folder / "schema.json")
        columns = contracts.features_schema(schema.columns)
        return perturbed_tables({which: contracts.read(file, columns) for which, file in files.items()}, schema)

    return Subject([folder / "schema.json", *files.values()], tables)


def _perturbed_networks(folder: Path, release: AnyNetworks) -> Subject:
    """Each network of every release with the processed one."""
    releases = {
        (setting, seed): folder / setting / f"seed-{seed}" for setting in release.settings() for seed in release.seeds
    }
    source = PROCESSED / release.data
    expected = [folder / "ledger.json", source / "schema.json", *(path / "schema.json" for path in releases.values())]
    files = [file for path in (folder, source) for file in sorted(path.rglob("*.parquet"))]
    budgets = {setting: budget.features_epsilon for setting, budget in release.settings().items()}
    features = released_features if release.accounting == "released" else perturbed_features
    per_user = release.words_per_user if release.accounting == "rigorous" else None

    def tables() -> list[Table]:
        checked: list[Table] = []
        before = contracts.read_processed(source)
        read = {which: contracts.read_processed(target) for which, target in releases.items()}
        for which, pair in read.items():
            if pair.schema.networks != before.schema.networks:
                raise DamagedError(f"{releases[which]}/schema.json: not of the networks of {source}; run perturb again")
            require_types(pair)
        for network in before.schema.networks:
            of_network = {which: pair.network(network) for which, pair in read.items()}
            checked += perturbed_network(
                of_network, budgets, features, per_user, before.network(network), f"{network}/"
            )
        return checked or perturbed_network(read, budgets, features, per_user, before, "")

    return Subject([*expected, *files], tables)


def words(key: str, params: Params) -> Subject:
    """User features as word vectors."""
    embedding = entry("words", key, params.words)
    folder = WORDS / key
    file = folder / "features.parquet"

    def tables() -> list[Table]:
        schema = contracts.read_schema(folder / "schema.json")
        columns = [f"{feature.name}.{number}" for feature in schema.features for number in range(embedding.dimension)]
        return word_tables(contracts.read(file, contracts.features_schema(columns)), schema)

    return Subject([folder / "schema.json", folder / "words.json", file], tables)


def recommendations(key: str, params: Params) -> Subject:
    """What an experiment released, every setting and seed, with the data it was trained on."""
    experiment: Experiment = entry("experiments", key, params.experiments)
    suite = params.suites[experiment.suite]
    return resolve(TASKS[suite.task].checks).released(key, experiment, suite)


def metrics(key: str, params: Params) -> Subject:
    """Metrics of all experiments of a suite, from training and from the attack."""
    suite: Suite = entry("suites", key, params.suites)
    of_training = resolve(TASKS[suite.task].checks).metrics
    attack = suite.attack_kind
    of_attack, rates = (resolve(attack.each), attack.rates) if attack and attack.each else (None, ())
    stages = measured_by(attack)
    files = [RUNS / key / name / stage / "metrics.parquet" for name in suite.experiments for stage in stages]

    def tables() -> list[Table]:
        expected = []
        for name, experiment in suite.experiments.items():
            for setting in experiment.settings():
                seeds = [*suite.runs(experiment, setting)]
                for names in (of_training, of_attack) if of_attack else (of_training,):
                    expected.append(measurements(name, [setting], seeds, names(suite, experiment, setting)))
        measured = [contracts.read(file, contracts.METRICS) for file in files]
        return metric_tables(pl.concat(measured), pl.concat(expected), rates)

    return Subject([*files, PROCESSED / suite.data / "schema.json"], tables)


LAYERS: dict[str, Callable[[str, Params], Subject]] = {
    "raw": raw_subject,
    "processed": processed_subject,
    "perturbed": perturbed_subject,
    "words": words,
    "embeddings": embedding.embeddings,
    "aligned": embedding.aligned_subject,
    "recommendations": recommendations,
    "metrics": metrics,
}


if __name__ == "__main__":
    run_stage(main)
