"""Stage `collect`: what a suite's runs produced as small files for git, from which its page is drawn.

Writes data/results/<suite>/ (`tasks.results.tables`). Everything is computed before anything is written, and each
file replaces its predecessor in one rename. The same runs always give the same bytes; what agrees with the results of
another processor leaves these as they are (`tasks.stages.agreement`).
data/results/<suite>/provenance.json is written only with one of them, or where there is none, so it stays that of the
runs that gave the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from filecmp import cmp
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel

from tasks.config.audited import unexplained
from tasks.config.params import Experiment, Params, Suite, entry, load, own_file
from tasks.config.tasks import TASKS, measured_by, resolve
from tasks.core import contracts
from tasks.core.disk import rename
from tasks.core.errors import ConfigurationError, DataError, PrivacyError
from tasks.evaluation.gains import GAINS
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import (
    PROCESSED,
    QUALITY,
    RESULTS,
    RUNS,
    SUMMARY,
    WORDS,
    digest,
    read_json,
    require_passed,
)
from tasks.pipeline.papers import numbers
from tasks.pipeline.provenance import path as provenance_path
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.results import facts, files, tables
from tasks.results.facts import BASE
from tasks.results.load import PROVENANCE, Results, Run, write_runs
from tasks.results.load import read_runs as recorded_runs
from tasks.results.tables import Spent
from tasks.stages import collect_parts
from tasks.stages.agreement import stands

if TYPE_CHECKING:
    from tasks.core.rows import Row

INPUTS = "inputs.json"
"""Of a run: the checks that its inputs passed, whether they are synthetic, and how much there was to attack."""
OF_NETWORKS: Row = {"networks": (), "anchors": 0, "aligned": ()}
"""Facts of a suite whose data are a pair of networks, as they are of any other."""
METRIC_ORDER = ("suite", "experiment", "dataset", "model", "setting", "metric", "k", "seed")


def main(name: str) -> None:
    """Collect the results of suite `name`.

    Raises:
        PrivacyError: a system claims or accounts a budget that has neither an audit nor a reason why it has none.
    """
    params = load()
    entry("suites", name, params.suites)
    require_passed("metrics", name, name)
    suite, frames = read_results(name, params)
    for problem in unexplained_lines(frames, params.suites[name]):
        raise PrivacyError(f"{RUNS / name / 'audit.json'}: {problem}")
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".", suffix=".partial") as target:
        new = Path(target)
        tables.write(new, suite, frames)
        changed = [
            file
            for file in files.WRITTEN
            if not (folder / file).is_file() or not cmp(new / file, folder / file, shallow=False)
        ]
        if changed and stands(folder, new, params.suites[name]):
            print(f"{folder}: agrees with what was computed, on another processor, and stays as it is")
            changed = []
        recorded = folder / PROVENANCE
        if changed or not recorded.exists():
            by_key = {(run.stage, run.name): run for run in (recorded_runs(recorded) if recorded.exists() else ())}
            by_key |= {(run.stage, run.name): run for run in read_runs(name, params)}
            if by_key:  # outputs that were pulled have no record here: theirs is the one that is known
                write_runs(by_key.values(), new / PROVENANCE)
                changed.append(PROVENANCE)
        for file in changed:
            rename(new / file, folder / file)


def unexplained_lines(frames: Mapping[str, pl.DataFrame], suite: Suite) -> list[str]:
    """Each private line that has neither an audit nor a reason: system, setting, and what is wrong."""
    audits = [(audit, json.loads(lines)) for audit, lines in frames["audits"].select("audit", "lines").iter_rows()]
    entries = tables.entries(frames["ledger"], frames["events"])
    return [
        f"{row['model']}, {row['setting']}: {problem}"
        for row in frames["ledger"].iter_rows(named=True)
        for config in [suite.experiments[row["experiment"]].settings()[row["setting"]]]
        for problem in unexplained(
            [entries[row["line"]]], config, [name for name, seen in audits if row["line"] in seen]
        )
    ]


def read_runs(suite: str, params: Params) -> list[Run]:
    """The provenance of every stage of the suite that left a record; outputs that were pulled have none."""
    options = params.suites[suite]
    attack = options.attack_kind
    names = [("train", TASKS[options.task].trained_by, name) for name in options.experiments]
    names += [("embed-networks", "embed_networks", name) for name in options.embeddings]
    names += [("align", "align", name) for name in options.aligned]
    names += [("audit", "audit", suite), ("audit-training", "audit_training", suite)]
    if attack is not None and attack.each:
        names += [("attack", attack.module, name) for name in options.experiments]
    elif attack is not None:
        names.append(("", attack.module, suite))
    seeds = {seed for experiment in options.experiments.values() for seed in options.runs(experiment, BASE)}
    seeds |= {seed for aligned in options.aligned.values() for seed in aligned.seeds}
    runs = []
    for stage, module, name in names:
        target = provenance_path(module, name)
        if target.is_file():
            record = read_json(target)
            training, units = _training(record.pop("epoch_seconds", {}), seeds), record.pop("units", {})
            runs.append(Run(**record | {"stage": stage or record["stage"]} | training | _cost(record, units)))
    return runs


def _training(seconds: dict[str, list[float]], seeds: set[int]) -> dict[str, float]:
    """Of what every epoch of every unit took: the median epoch, and all epochs of a seed on average, at `base`."""
    base = [seconds[label] for seed in seeds if (label := f"{BASE}-seed-{seed}") in seconds]
    if not base:
        return {}
    combined = [record for of_seed in base for record in of_seed]
    return {"epoch_seconds": round(median(combined), 3), "training_seconds": round(sum(combined) / len(base), 3)}


def _cost(record: Row, units: dict[str, dict[str, float]]) -> dict[str, float]:
    """What a stage took in all processes: that of its units, which add up, or else its own."""
    if not units:
        return {}
    seconds = sum(of_unit["cpu_seconds"] for of_unit in units.values())
    memory = max(of_process["peak_memory_mb"] for of_process in (record, *units.values()))
    return {"cpu_seconds": round(max(seconds, record["cpu_seconds"]), 1), "peak_memory_mb": memory}


def read_results(suite: str, params: Params) -> tuple[facts.Suite, dict[str, pl.DataFrame]]:
    """Everything the suite's runs produced: its facts, and tables by name (`tasks.results.tables`).

    Raises:
        DataError: a run is missing or not what its contract says, or real and synthetic data are mixed.
    """
    options = params.suites[suite]
    experiments, data = options.experiments, options.data
    if not experiments:
        raise ConfigurationError(f"{own_file(suite)}: experiments: there are none; add one or remove the suite")
    task, attack = TASKS[options.task], options.attack_kind
    folders = {(name, stage): RUNS / suite / name / stage for name in experiments for stage in measured_by(attack)}
    measured = [contracts.read(folder / "metrics.parquet", contracts.METRICS) for folder in folders.values()]
    inputs = {which: read_json(folder / INPUTS) for which, folder in folders.items()}
    more = resolve(task.collects)(suite, params) if task.collects else {}
    metrics = pl.concat([*measured, *more.pop("metrics", [])])
    about = _facts(suite, params, inputs, {name: more.pop(name) for name in list(more) if name in OF_NETWORKS})
    spending = [line for name in experiments for line in _read_spent(suite, name)]
    ledger = tables.ledger(spending, {system.experiment: system.model for system in about.systems})
    records = read_json(RUNS / suite / "audit.json")
    if attack is None:
        attacks = pl.DataFrame(schema={"experiment": pl.String, "model": pl.String, **pl.Schema(GAINS)})
    elif attack.table:
        attacks = resolve(attack.table)(Results.of(about, metrics), numbers(options.paper).overlap)
    else:
        attacks = collect_parts.attacks(suite, params)
    return about, ledger | {
        "metrics": metrics.select(contracts.METRICS.names).sort(METRIC_ORDER),
        "attacks": attacks,
        "history": pl.concat(_history(suite, name) for name in experiments),
        "audits": tables.audits(records, ledger["ledger"]),
        "one_run": pl.DataFrame(
            read_json(RUNS / suite / "one_run.json") if options.training_audit else [], tables.ONE_RUN
        ),
        "checks": pl.DataFrame(_checks(suite, inputs), tables.CHECKS),
        "pairs": collect_parts.compare_pairs(suite, params),
        "counts": pl.concat(_counts(name, params, counted=name != data) for name in (data, options.counts) if name),
        **more,
    }


def _facts(name: str, params: Params, inputs: dict[tuple[str, str], Row], networks: Row) -> facts.Suite:
    options, counted = params.suites[name], params.suites[name].counts
    source = read_json(PROCESSED / options.data / "source.json")
    if counted is not None:
        require_passed("processed", counted)
    targets = [record["targets"] for record in inputs.values() if "targets" in record]
    prints = data_fingerprints(options.data, params) | (data_fingerprints(counted, params) if counted else {})
    return facts.Suite(
        suite=name,
        paper=options.paper,
        dataset=options.data,
        publication=params.publication(options.data),
        counted=params.publication(counted) if counted else "",
        n_features=_n_features(options.data),
        n_counted_features=_n_features(counted) if counted else 0,
        synthetic=_is_synthetic(name, inputs, source),
        stands_for=params.stands_for(options.data),
        source=facts.Source(**{key: source[key] for key in facts.Source.model_fields}),
        attack=None if options.attack is None else options.attack.model_dump(mode="json"),
        n_targets=max(targets, default=0),
        fingerprints=prints,
        words=tuple(_words(params, name)),
        systems=tuple(read_system(key, experiment, params) for key, experiment in options.experiments.items()),
        **(OF_NETWORKS | networks),
    )


def _n_features(data: str) -> int:
    return len(read_json(PROCESSED / data / "schema.json")["features"])


def _counts(data: str, params: Params, *, counted: bool) -> pl.DataFrame:
    """What each step of a protocol left, under the name of the data's publication, or that of its replica."""
    counts = read_json(PROCESSED / data / "counts.json")
    about = {"dataset": params.publication(data), "counted": counted}
    rows = [about | step | {"numbers": json.dumps(step["numbers"])} for step in counts]
    return pl.DataFrame(rows, tables.COUNTS)


def data_fingerprints(data: str, params: Params) -> dict[str, str]:
    """SHA-256 of processed data that any user may fetch; none of a user's own, of which it would confirm any guess."""
    options = params.datasets[params.processed[data].dataset].is_own
    return {} if options else {data: digest(PROCESSED / data)}


def _words(params: Params, suite: str) -> list[dict[str, object]]:
    """What is known of every set of word vectors that the suite's systems read."""
    layers = (facts.layer_of(experiment.features) for experiment in params.suites[suite].experiments.values())
    names = dict.fromkeys(name for layer, name in layers if layer == WORDS.name)
    return [{"name": name} | read_json(WORDS / name / "words.json") for name in names]


def read_system(name: str, experiment: Experiment, params: Params) -> facts.System:
    """One experiment: its parameters, and which runs the cap on epochs ended."""
    return facts.System(
        experiment=name,
        model=experiment.system,
        label=name.removeprefix(f"{experiment.suite}-") or name,
        dataset=experiment.data,
        seeds=tuple(params.suites[experiment.suite].runs(experiment, BASE)),
        parameters=deciding_parameters(experiment, params),
        cut_off=cut_off(read_json(RUNS / experiment.suite / name / "train/history.json")),
    )


def _history(suite: str, name: str) -> pl.DataFrame:
    """What pages show of training: `tables.HISTORY` at setting `base`."""
    history = read_json(RUNS / suite / name / "train/history.json")
    rows = [
        {"experiment": name, "seed": int(seed)} | {key: epoch.get(key) for key in list(tables.HISTORY)[2:]}
        for seed, epochs in history.get(BASE, {}).items()
        for epoch in epochs
    ]
    return pl.DataFrame(rows, tables.HISTORY)


def deciding_parameters(experiment: Experiment, params: Params) -> dict[str, object]:
    """The parameters that decided an experiment; with those of the embeddings that it takes over.

    Its system stands under `model`, as everywhere in results.
    """

    def dump(entry: BaseModel) -> dict[str, object]:
        return entry.model_dump(mode="json", exclude={"suite", "code"})  # where it stands, and the model's own file

    layer, name = facts.layer_of(experiment.features)
    runs = params.suites[experiment.suite].runs(experiment, BASE)
    parameters = dump(experiment)
    parameters["model"] = parameters.pop("system")
    if further := [data for data in runs.values() if data != experiment.data]:
        parameters["features_of_splits"] = [params.features_of(experiment, data) for data in dict.fromkeys(further)]
    if layer == "aligned":
        parameters["aligned"] = dump(params.aligned[name])
        upstream = params.aligned[name].embeddings
        assert upstream is not None, "params.load lets no system read an alignment without embeddings"
        name = upstream
    if layer in ("embeddings", "aligned"):
        parameters["embeddings"] = dump(params.embeddings[name])
    return parameters


def cut_off(history: dict[str, dict[str, list[dict[str, object]]]]) -> dict[str, tuple[int, ...]]:
    """See `System.cut_off`; of runs that validation chose among."""
    by_setting = {
        setting: tuple(int(seed) for seed, epochs in seeds.items() if epochs and epochs[-1].get("cut_off"))
        for setting, seeds in history.items()
    }
    return {setting: seeds for setting, seeds in by_setting.items() if seeds}


def _read_spent(suite: str, experiment: str) -> Iterator[Spent]:
    for record in read_json(RUNS / suite / experiment / "train/ledger.json"):
        setting, seed, network = record.pop("setting"), record.pop("seed"), record.pop("network", "")
        yield Spent(experiment, setting, seed, LedgerEntry.model_validate(record), network)


def _is_synthetic(suite: str, inputs: dict[tuple[str, str], dict[str, object]], source: dict[str, object]) -> bool:
    """Whether the suite's data were generated; its runs must agree with the source."""
    for (name, stage), read in inputs.items():
        if read["synthetic"] != source["synthetic"]:
            raise DataError(
                f"{RUNS / suite / name / stage / INPUTS}: synthetic is {read['synthetic']}, but {source['synthetic']} "
                f"in the source.json of the data; run `dvc repro collect@{suite}`"
            )
    return bool(source["synthetic"])


def _checks(suite: str, inputs: dict[tuple[str, str], Row]) -> tuple[Row, ...]:
    """Every check that the runs passed, and that of their metrics, once each and sorted."""
    verdict = read_json(QUALITY / "metrics" / f"{suite}.json")
    combined = [check for read in inputs.values() for check in read["checks"]]
    combined.append({key: verdict[key] for key in SUMMARY})
    by_contract = {(check["contract"], check["name"]): check for check in combined}
    return tuple(by_contract[key] for key in sorted(by_contract))


if __name__ == "__main__":
    run_stage(main)
