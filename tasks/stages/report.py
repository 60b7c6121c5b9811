"""Stage `report`: everything of one suite as one page and five small tables.

Writes data/reports/<suite>/index.html (self-contained, works offline) and data/results/<suite>/metrics.csv,
comparison.csv, ledger.csv, attacks.csv and claims.csv. Everything is computed before anything is written, and each
output replaces its predecessor in one rename. The same runs always give the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from tasks import contracts
from tasks.errors import ConfigurationError, DataError
from tasks.evaluation.gains import GAINS
from tasks.privacy.ledger import LedgerEntry
from tasks.reporting import claims, comparison, embeddings, leaks, ledger, one_run, reconstruction
from tasks.reporting.layout import joined
from tasks.reporting.page import headline_cutoff, render
from tasks.reporting.results import (
    GAIN_ORDER,
    METRIC_ORDER,
    Aligned,
    Network,
    Processed,
    Results,
    Run,
    Spent,
    System,
    label,
    unique,
)
from tasks.stages.attack_params import Attack, AttributeAttack, EdgeAttack, ReconstructionAttack
from tasks.stages.common import (
    DATA,
    PROCESSED,
    QUALITY,
    REFERENCE,
    REPORTS,
    RESULTS,
    RUNS,
    read_json,
    require_passed,
    run_stage,
    whole,
)
from tasks.stages.params import Experiment, Params, load, own_file

PUBLISHED = {
    "paper": pl.String,
    "artefact": pl.String,
    "dataset": pl.String,
    "method": pl.String,
    "setting": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "std": pl.Float64,
}
VALIDATION = {"top-k": "", "next-item": "Recall@{k}", "rating": "minus the MAE", "embedding": ""}
"""Task of a suite -> the metric that chose epochs; empty for what the report's layout calls it."""
EMBEDDED = DATA / "embedded"
LAYERS = {"processed": "true attributes", "perturbed": "perturbed attributes"}
"""Layer of the attributes that an alignment sees -> how it is told."""
DOCS = "../../quality"
"""Data docs seen from data/reports/<suite>/index.html."""


def main(name: str) -> None:
    """Write the report of suite `name`."""
    params = load()
    if name not in params.suites:
        raise ConfigurationError(f"params.yaml: suites has no {name!r}; known: {', '.join(sorted(params.suites))}")
    require_passed("metrics", name, name)
    results = read_results(name, params)
    judged = claims.published_claims(results, headline_cutoff(results))
    page = render(results, judged, docs=DOCS)
    columns = contracts.METRICS.names
    frames = {
        "metrics": results.metrics.select(columns).sort(METRIC_ORDER),
        "comparison": comparison.frame(results),
        "ledger": ledger.frame(results),
        "attacks": attacks(results, params.suites[name].attack),
        "claims": claims.frame(judged),
    }
    for table, frame in frames.items():
        with whole(RESULTS / name / f"{table}.csv") as place:
            frame.with_columns(pl.col(pl.String).replace("", None)).write_csv(place, float_precision=6)
    with whole(REPORTS / name) as place:
        place.mkdir()
        (place / "index.html").write_text(page, encoding="utf-8")


def attacks(results: Results, attack: Attack | None) -> pl.DataFrame:
    """What the suite's attack found: on single interactions, on sensitive ratings, on embeddings, or on attributes."""
    if results.networks:
        return leaks.frame(results)
    if results.edges is not None:
        return results.edges.sort("system", "setting", "target", "world", "epsilon")
    if isinstance(attack, ReconstructionAttack):
        return reconstruction.frame(results)
    return results.gains.select("experiment", "model", *GAINS.names).sort(GAIN_ORDER)


def read_results(suite: str, params: Params) -> Results:
    """Everything the suite's runs produced.

    Raises:
        DataError: a run is missing or not what its contract says, or real and synthetic data are mixed.
    """
    own = params.suites[suite]
    experiments, data = own.experiments, own.data
    if not experiments:
        raise ConfigurationError(f"{own_file(suite)}: experiments: there are none; add one or remove the suite")
    attacked = isinstance(own.attack, AttributeAttack)
    embedding = own.task == "embedding"
    stages = (
        ("train", "attack")
        if isinstance(own.attack, AttributeAttack | ReconstructionAttack) or (embedding and own.attack is not None)
        else ("train",)
    )
    source = read_json(PROCESSED / data / "source.json")
    systems = tuple(read_system(name, experiment, stages) for name, experiment in experiments.items())
    folders = [RUNS / suite / name for name in experiments]
    tables = [
        contracts.read(folder / stage / "metrics.parquet", contracts.METRICS) for folder in folders for stage in stages
    ]
    gains = [_gains(name, experiment) for name, experiment in experiments.items() if attacked]
    targets = [
        read_json(folder / "attack" / "run.json")["targets"]
        for folder in folders
        if "attack" in stages and not embedding
    ]
    networks, anchors = read_networks(data) if embedding else ((), 0)
    aligned = read_aligned(suite, params, anchors) if embedding else []
    tables += [table for _, table in aligned]
    return Results(
        suite=suite,
        title=own.title,
        dataset=data,
        synthetic=_synthetic(suite, systems, source),
        licence=f"{source['dataset']}, from {source['address']}. Licence: {source['licence']}",
        systems=systems,
        metrics=pl.concat(tables),
        gains=pl.concat(gains) if gains else _no_gains(),
        audit=tuple(read_json(RUNS / suite / "audit.json")),
        verdict=read_json(QUALITY / "metrics" / f"{suite}.json"),
        published=_published(),
        n_targets=max(targets, default=0),
        processed=_processed(data, params),
        edges=_edges(suite, params),
        one_run=tuple(_whole(RUNS / suite / "one_run.json", one_run.FIELDS)),
        words=tuple(_words(params, suite)),
        validation=VALIDATION[own.task].format(k=own.training.validation_k),
        part=own.about.part,
        limits=own.about.limits,
        networks=networks,
        anchors=anchors,
        aligned=tuple(entry for entry, _ in aligned),
    )


def read_networks(data: str) -> tuple[tuple[Network, ...], int]:
    """The networks of processed data that are a pair, and how many people are known to be in both.

    Raises:
        DataError: the data are no pair, or a file is not there.
    """
    names = read_json(PROCESSED / data / "schema.json")["networks"]
    if not names:
        raise DataError(f"{PROCESSED / data}/schema.json: it has no networks; a suite of embeddings needs a pair")
    anchors = read_json(PROCESSED / data / "counts.json")[-1]["links"]
    return tuple(_network(data, name) for name in names), int(anchors)


def _network(data: str, name: str) -> Network:
    schema = read_json(PROCESSED / data / name / "schema.json")
    left = read_json(PROCESSED / data / name / "counts.json")[-1]
    return Network(
        name=name,
        users=left["users"],
        posts=left["posts"],
        friendships=left["links"],
        labelled=bool(schema["labels"]),
        sensitive=tuple(feature["name"] for feature in schema["features"] if feature["sensitive"]),
        texts=next((kind for kind in ("posts", "vectors") if kind in schema["tables"]), "none"),
        attributed=bool(schema["features"]),
    )


def read_aligned(suite: str, params: Params, anchors: int) -> list[tuple[Aligned, pl.DataFrame]]:
    """Every alignment of the suite, with its metrics.

    Args:
        suite: the suite's name.
        params: of all suites.
        anchors: people who are known to be in both networks.

    Raises:
        DataError: the metrics of an entry are not there or not what their contract says.
    """
    found = []
    for name, entry in params.suites[suite].aligned.items():
        metrics = contracts.read(RUNS / suite / "alignments" / name / "metrics.parquet", contracts.METRICS)
        layer = params.networks_of(entry).partition("/")[0]
        sees = [f"vectors by {params.embeddings[entry.embeddings].model}"] if entry.embeddings else []
        columns = "" if entry.matches_columns else ", unknown which is which"
        sees += [LAYERS[layer] + columns] if entry.reads_attributes else []
        found.append((Aligned(name, joined(sees), round(entry.test_share * anchors)), metrics))
    return found


def _edges(suite: str, params: Params) -> pl.DataFrame | None:
    """What the attack on single interactions found; None in a suite without that attack."""
    if not isinstance(params.suites[suite].attack, EdgeAttack):
        return None
    path = RUNS / suite / "edges/edges.parquet"
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: not readable ({error}); run attack-edges again") from error


def _words(params: Params, suite: str) -> list[dict[str, Any]]:
    """What is known of every set of word vectors that the suite's systems read."""
    names = unique(
        [
            name
            for experiment in params.suites[suite].experiments.values()
            for layer, _, name in [experiment.features.partition("/")]
            if layer == EMBEDDED.name
        ]
    )
    return [{"name": name} | one for name in names for one in _whole(EMBEDDED / name / "words.json", embeddings.FIELDS)]


def _whole(path: Path, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """The records of a file, or its only one, each with all fields; empty where there is no such file."""
    if not path.exists():
        return []
    found = read_json(path)
    records = found if isinstance(found, list) else [found]
    for index, record in enumerate(records):
        if lacking := [name for name in fields if name not in record]:
            raise DataError(f"{path}: record {index} has no {lacking[0]!r}; run the stage that writes it again")
    return records


def _processed(data: str, params: Params) -> Processed:
    """What the protocol left of the suite's data, under the name that publications have for it; a twin has its own."""
    schema = read_json(PROCESSED / data / "schema.json")
    published = params.datasets[params.processed[data].dataset].source.replace("_", "-")
    return Processed(published, len(schema["features"]), tuple(read_json(PROCESSED / data / "counts.json")))


def read_system(name: str, experiment: Experiment, stages: tuple[str, ...]) -> System:
    """One experiment: its runs in `stages`, its history and what it spent."""
    folder = RUNS / experiment.suite / name
    runs = tuple(Run(stage, read_json(folder / stage / "run.json")) for stage in stages)
    return System(
        experiment=name,
        model=experiment.model,
        label=label(name, experiment.suite),
        runs=runs,
        history=read_json(folder / "train" / "history.json"),
        spent=tuple(_spent(folder / "train" / "ledger.json")),
    )


def _gains(name: str, experiment: Experiment) -> pl.DataFrame:
    """What the attacks on one experiment gain over their controls."""
    found = contracts.read(RUNS / experiment.suite / name / "attack/gains.parquet", GAINS)
    return found.select(pl.lit(name).alias("experiment"), pl.lit(experiment.model).alias("model"), pl.all())


def _no_gains() -> pl.DataFrame:
    nothing = pl.from_arrow(GAINS.empty_table())
    assert isinstance(nothing, pl.DataFrame)
    return nothing.select(pl.lit("").alias("experiment"), pl.lit("").alias("model"), pl.all())


def _spent(path: Path) -> list[Spent]:
    found = []
    for index, record in enumerate(read_json(path)):
        fields: dict[str, Any] = dict(record)
        try:
            setting, seed, network = fields.pop("setting"), fields.pop("seed"), fields.pop("network", "")
            found.append(Spent(setting, seed, LedgerEntry.model_validate(fields), network))
        except (KeyError, ValidationError) as error:
            problem = " ".join(str(error).split())
            raise DataError(f"{path}: entry {index} is not a ledger entry ({problem}); run train again") from error
    return found


def _synthetic(suite: str, systems: tuple[System, ...], source: dict[str, Any]) -> bool:
    """Whether the suite's data were generated; its runs must agree with the source."""
    for system in systems:
        for run in system.runs:
            if run.record["synthetic"] != source["synthetic"]:
                raise DataError(
                    f"{RUNS / suite / system.experiment / run.stage}/run.json: synthetic is "
                    f"{run.record['synthetic']}, but {source['synthetic']} in the source.json of the data; "
                    f"run `dvc repro report@{suite}`"
                )
    return bool(source["synthetic"])


def _published() -> pl.DataFrame:
    path = REFERENCE / "paper_tables.csv"
    try:
        return pl.read_csv(path, schema=PUBLISHED)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: not the table of published figures ({error})") from error


if __name__ == "__main__":
    run_stage(main)
