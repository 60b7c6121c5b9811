"""The pipeline as one table: which stages there are, the module each runs, what it reads and writes.

`tasks.pipeline.dvc_files` writes every dvc.yaml from it, `tasks.stages.code` a fingerprint for each of its stages.
Strings are in DVC's own terms: `${key}` is the instance (`gerai-bpr` of `train@gerai-bpr`), `${item.X}` what `items`
says of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath
from string import Template
from typing import Any

from tasks.config.fields import Perturbed, PerturbedFeatures
from tasks.config.params import Experiment, Params, Suite
from tasks.config.tasks import TASKS, measured_by, resolve
from tasks.core.errors import ConfigurationError
from tasks.core.fingerprints import Plugin
from tasks.pipeline import papers, table_attacks, table_audits
from tasks.pipeline.common import file_digest
from tasks.pipeline.stage import Items, Stage, checked, inherited_keys, model, names
from tasks.results.facts import layer_of
from tasks.results.files import WRITTEN

DECIDES_NOTHING = True
ROOT, DATA = "dvc.yaml", "data/dvc.yaml"
RESULTS = tuple(file for file in WRITTEN if file != "metrics.csv")
"""What `collect` writes of a suite and `report` reads; metrics.csv is for people."""
TABLES = ("claims.csv", "comparison.csv", "composed.json", "evidence.csv", "plots", "summary.json")
"""What follows from them, and `report` writes."""
PUBLISHED = "data/reference/paper_tables.csv"


def dvc_files(params: Params) -> dict[str, list[Stage]]:
    """The stages of every dvc.yaml, in their order; but for `code`, which comes before them all."""
    files = {ROOT: [*_report(params)], DATA: [*_data(params)]}
    return files | {own_file(name): [*_suite(name, suite, params)] for name, suite in params.suites.items()}


def own_file(suite: str) -> str:
    """The dvc.yaml of a suite."""
    return f"suites/{suite}/dvc.yaml"


def code_file(dvc_file: str) -> str:
    """Where the fingerprints of the stages of a dvc.yaml are: next to it."""
    return PurePosixPath(dvc_file).with_name("code.json").as_posix()


def find(module: str, argument: str, params: Params) -> tuple[str, Stage, str] | None:
    """What `python -m tasks.stages.MODULE ARGUMENT` runs: a stage's code.json, kind and instance; None: no stage."""
    for file, stages in dvc_files(params).items():
        for stage in (candidate for candidate in stages if candidate.module == module):
            for key in stage.items:
                if Template(stage.argument).substitute(key=key) == argument:
                    return code_file(file), stage, key
    return None


def find_stage(stage: str, key: str, params: Params) -> Stage:
    """The stage called `stage@key`.

    Raises:
        ConfigurationError: there is none.
    """
    for candidate in chain.from_iterable(dvc_files(params).values()):
        if candidate.name == stage and key in candidate.items:
            return candidate
    raise ConfigurationError(f"{stage}@{key}: the parameters name no such stage; `dprec check` shows what there is")


def _report(params: Params) -> Iterator[Stage]:
    yield Stage(
        "report",
        {name: {} for name in params.suites},
        deps=(*(f"data/results/${{key}}/{file}" for file in RESULTS), PUBLISHED),
        outs=("data/reports/${key}",),
        committed=tuple(f"data/results/${{key}}/{file}" for file in TABLES),
        params={"suites/${key}/params.yaml": ("title", "about", "training.validation_k")},
        plugins=lambda key: [*papers.plugins(params.suites[key].paper), *_of_attack(params.suites[key], "evidence")],
        decides=lambda key: [TASKS[params.suites[key].task].validation],
    )


def _data(params: Params) -> Iterator[Stage]:
    root = "params.yaml"
    datasets: Items = {name: {} for name in params.datasets}
    yield Stage(
        "download",
        datasets,
        deps=(),
        outs=("data/raw/${key}",),
        params={root: ("datasets.${key}.obtain", "datasets.${key}.source")},
        plugins=lambda key: [Plugin("tasks.datasets", "SOURCES", params.datasets[key].source)],
        # what a user's own files hold; one that is not there is the stage's to name
        decides=lambda key: [
            file_digest(file) if file.is_file() else "" for file in params.datasets[key].own_files().values()
        ],
    )
    yield Stage(
        "convert",
        datasets,
        deps=("data/raw/${key}",),
        outs=("data/interim/${key}",),
        params={root: ("datasets.${key}.format", "datasets.${key}.read")},
        plugins=lambda key: [Plugin("tasks.datasets", "FORMATS", params.datasets[key].format)],
    )
    yield _check("raw", datasets, deps=("data/interim/${key}",))
    processed = {name: {"dataset": protocol.dataset} for name, protocol in params.processed.items()}
    yield Stage(
        "preprocess",
        processed,
        deps=("data/interim/${item.dataset}", "data/quality/raw/${item.dataset}.json"),
        outs=("data/processed/${key}",),
        params={root: ("processed.${key}",)},
        plugins=lambda key: [Plugin("tasks.papers", "PROTOCOLS", params.processed[key].protocol)],
    )
    yield _check("processed", {name: {} for name in processed}, deps=("data/processed/${key}",))
    perturbed = {name: {"data": perturbation.data} for name, perturbation in params.perturbed.items()}
    processed_data = checked("processed/${item.data}")
    yield Stage(
        "perturb",
        perturbed,
        deps=processed_data,
        outs=("data/perturbed/${key}",),
        params={root: ("perturbed.${key}",)},
        plugins=lambda key: [_mechanism(params.perturbed[key])],
    )
    yield _check("perturbed", perturbed, deps=("data/perturbed/${key}", "data/processed/${item.data}"))
    if params.words:
        words = {name: {"data": embedding.data} for name, embedding in params.words.items()}
        keys = {root: ("words.${key}",)}
        yield Stage("embed", words, deps=processed_data, outs=("data/words/${key}",), params=keys)
        yield _check("words", {name: {} for name in words}, deps=("data/words/${key}",))


def _check(layer: str, items: Items, deps: tuple[str, ...], passed: tuple[str, ...] = (), **more: Any) -> Stage:
    """A check of Great Expectations: a verdict, which is what later stages wait for, and browsable data docs.

    It has no parameters: those that say what must be there decided what it reads.
    """
    return Stage(
        f"check-{layer}",
        items,
        deps=deps,
        outs=(f"data/quality/{layer}/${{key}}.json", f"data/quality/{layer}/${{key}}", *passed),
        argument=f"{layer}/${{key}}",
        runs="check",
        **more,
    )


def _all_names(suite: Suite) -> list[object]:
    """Of everything that a suite runs."""
    experiments = [[key, *names(experiment)] for key, experiment in suite.experiments.items()]
    return [experiments, list(suite.embeddings), list(suite.aligned)]


def _of_task(suite: Suite, target: str | None) -> list[Plugin]:
    """What a suite's task names."""
    return [Plugin("tasks.config.tasks", "TASKS", suite.task, at=target)] if target else []


def _of_attack(suite: Suite, field: str) -> list[Plugin]:
    """What the kind of a suite's attack names there."""
    named = getattr(suite.attack_kind, field, None) or ()
    targets = [named] if isinstance(named, str) else named
    return [Plugin("tasks.config.tasks", "ATTACKS", suite.attack.kind, target) for target in targets if suite.attack]


def _mechanism(release: Perturbed) -> Plugin:
    table = "FEATURES" if isinstance(release, PerturbedFeatures) else "NETWORKS"
    return Plugin("tasks.config.fields", table, release.mechanism)


def _suite(name: str, suite: Suite, params: Params) -> Iterator[Stage]:
    file, runs = f"suites/{name}/params.yaml", f"data/runs/{name}"
    task, networks = TASKS[suite.task], TASKS[suite.task].networks
    if networks:
        yield from _networks(name, suite)
    data: Items = {key: {"data": experiment.data} for key, experiment in suite.experiments.items()}
    against = tuple(f"data/processed/${{item.data}}{file}" for file in task.checked_against)
    read = ["processed/${item.data}"]
    for number, split in enumerate(suite.splits):
        against += tuple(f"data/processed/{split}{file}" for file in task.checked_against)
        read += [f"processed/{split}", f"${{item.features_{number}}}"]
    yield Stage(
        "train",
        {
            key: {"data": experiment.data, "features": experiment.features}
            | {f"features_{n}": params.features_of(experiment, split) for n, split in enumerate(suite.splits)}
            | (_made_from(experiment, params) if networks else {})
            for key, experiment in suite.experiments.items()
        },
        deps=(
            *checked(*read, "${item.features}"),
            *(("data/${item.alone}", "data/${item.networks}") if networks else ()),
        ),
        outs=(f"{runs}/${{key}}/released", f"{runs}/${{key}}/train"),
        params={
            file: (
                *inherited_keys(suite, "experiments"),
                "experiments.${key}",
                *(("evaluation.seed",) if networks else ("evaluation", "training")),
                *(key for key in ("splits", "sweep_splits") if getattr(suite, key)),
            )
        },
        plugins=lambda key: [model(suite.experiments[key].model), *_of_task(suite, task.evaluator)],
        decides=lambda key: names(suite.experiments[key]),
        runs=task.trained_by,
    )
    yield _check(
        "recommendations",
        data,
        deps=(*against, f"{runs}/${{key}}/released"),
        passed=(f"{runs}/${{key}}/checked.json",),
        decides=lambda key: names(suite.experiments[key]),
        plugins=lambda _: _of_task(suite, task.checks),
    )
    if suite.attack_kind is not None:
        yield from resolve(suite.attack_kind.stages)(name, suite)
    if suite.training_audit is not None:
        yield table_attacks.audit_training(name, suite)
    yield from _last_stages(name, suite, params)


def _made_from(experiment: Experiment, params: Params) -> dict[str, str]:
    """What the features of an experiment on networks were made from: embeddings of each alone, and the networks."""
    made = table_audits.layers_behind(experiment.features, params)
    return {"alone": made[-2:][0], "networks": made[-1]}


def _networks(name: str, suite: Suite) -> Iterator[Stage]:
    """Networks embedded alone, and aligned."""
    file, runs = f"suites/{name}/params.yaml", f"data/runs/{name}"
    data = "data/processed/${item.data}"
    keys = {file: (*inherited_keys(suite, "embeddings"), "embeddings.${key}")}
    yield Stage(
        "embed-networks",
        {key: {"data": embedding.data, "networks": embedding.networks} for key, embedding in suite.embeddings.items()},
        deps=("data/${item.networks}", f"{data}/schema.json", "data/quality/${item.networks}.json"),
        outs=("data/embeddings/${key}",),
        params=keys,
        plugins=lambda key: [model(suite.embeddings[key].model)],
    )
    embedded: Items = {key: {"data": embedding.data} for key, embedding in suite.embeddings.items()}
    yield _check("embeddings", embedded, deps=("data/embeddings/${key}", data))
    aligned: Items = {key: {"data": alignment.data, "of": alignment.of} for key, alignment in suite.aligned.items()}
    keys = {file: (*inherited_keys(suite, "aligned"), "aligned.${key}")}
    yield Stage(
        "align",
        aligned,
        deps=("data/${item.of}", data, "data/quality/${item.of}.json"),
        outs=("data/aligned/${key}", f"{runs}/alignments/${{key}}"),
        params=keys,
    )
    yield _check(
        "aligned",
        {key: {"data": item["data"]} for key, item in aligned.items()},
        deps=("data/aligned/${key}", data, f"{runs}/alignments/${{key}}"),
        passed=(f"{runs}/alignments/${{key}}.json",),
    )


def _outputs_to_collect(runs: str, suite: Suite) -> Iterator[str]:
    """What is kept of the runs apart from their metrics, and what is counted with them."""
    kind = suite.attack_kind
    parts = (*TASKS[suite.task].collected_from, "checked.json")
    yield from (f"{runs}/{key}/{part}" for key in suite.experiments for part in parts)
    yield from (f"{runs}/alignments/{key}{end}" for key in suite.aligned for end in ("", ".json"))
    yield from ([f"{runs}/{kind.writes}"] if kind is not None and kind.writes else [])
    yield from (f"data/processed/{split}/user_ids.parquet" for split in suite.splits)
    yield from (f"{runs}/audit.json", *([f"{runs}/one_run.json"] if suite.training_audit is not None else []))
    if suite.counts is not None:
        yield from checked(f"processed/{suite.counts}")


def _last_stages(name: str, suite: Suite, params: Params) -> Iterator[Stage]:
    """The audit of the mechanisms, the check of all metrics, and what is kept of everything that ran."""
    file, attack, runs = f"suites/{name}/params.yaml", f"suites/{name}/attack.yaml", f"data/runs/{name}"
    task, networks = TASKS[suite.task], TASKS[suite.task].networks
    experiments = (*inherited_keys(suite, "experiments"), "experiments")
    pairs = [each for key in ("embeddings", "aligned") if networks for each in (*inherited_keys(suite, key), key)]
    data = ("data", *(key for key in ("counts", "splits", "sweep_splits", "ceilings") if getattr(suite, key)))
    released = tuple(f"perturbed.{entry}" for entry in table_audits.releases(name, params))
    yield Stage(
        "audit",
        {name: {}},
        deps=(f"data/processed/{suite.data}" + ("" if networks else "/schema.json"),),
        outs=(f"{runs}/audit.json",),
        decides=lambda _: _all_names(suite),
        plugins=lambda _: [Plugin("tasks.audits", "AUDITS", audit) for audit in table_audits.names(name, params)],
        params={file: ("task", *experiments, *pairs)} | ({"params.yaml": released} if released else {}),
    )
    measured = [f"{runs}/{key}/{stage}" for key in suite.experiments for stage in measured_by(suite.attack_kind)]
    yield Stage(
        "check-metrics",
        {name: {}},
        deps=(f"data/processed/{suite.data}", *measured),
        outs=("data/quality/metrics/${key}.json", "data/quality/metrics/${key}"),
        params={attack: ("attack",), file: ("task", "evaluation", *experiments)},
        argument="metrics/${key}",
        runs="check",
        decides=lambda _: _all_names(suite),
        plugins=lambda _: [*_of_task(suite, task.checks), *_of_attack(suite, "each")],
    )
    source = params.datasets[params.processed[suite.data].dataset].source
    layers = sorted({layer_of(experiment.features) for experiment in suite.experiments.values()})
    yield Stage(
        "collect",
        {name: {}},
        deps=(
            f"data/processed/{suite.data}",
            *(f"data/words/{vectors}" for layer, vectors in layers if layer == "words"),
            *measured,
            *_outputs_to_collect(runs, suite),
            "data/quality/metrics/${key}.json",
        ),
        outs=(),
        committed=tuple(f"data/results/${{key}}/{file}" for file in WRITTEN),
        params={
            attack: ("attack",),
            file: ("paper", *data, "task", "evaluation", "training", *experiments, *pairs),
        },
        plugins=lambda _: [*_of_task(suite, task.collects), *_of_attack(suite, "table")],
        decides=lambda _: [source, params.stands_for(suite.data), papers.numbers(suite.paper), *_all_names(suite)],
    )
