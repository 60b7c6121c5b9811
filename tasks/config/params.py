"""params.yaml and the files of suites/<suite>/ as types.

No field has a default but an empty one, and `system` its model's name: only these files say what decides a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from tasks.config import fields, messages
from tasks.config.attacks import TrainingAudit
from tasks.config.fields import BASE, NAME, Cutoffs, Name, Perturbed, PerturbedFeatures, Seeds, Strict, Tuning, choice
from tasks.config.messages import PARAMS_FILE as PARAMS_FILE
from tasks.config.networks import Alignment, NetworkEmbeddings
from tasks.config.tasks import ATTACKS, TASKS, Attack, AttackKind
from tasks.core.errors import ConfigurationError
from tasks.datasets import FORMATS, SOURCES
from tasks.evaluation.run_numbers import APART
from tasks.models import MODELS
from tasks.papers import PROTOCOLS

HOLDS_PARAMETERS = True
SUITES = Path("suites")  # the folder of the suites' own folders, next to `PARAMS_FILE`
OWN_FILES = {"params.yaml": (), "attack.yaml": ("attack", "training_audit"), "tuning.yaml": ("tuning",)}
"""Files of a suite -> the sections that stand there; all others stand in params.yaml, which most stages depend on."""
_Entry = TypeVar("_Entry")
_Kind = TypeVar("_Kind", bound=Attack)
_Options = TypeVar("_Options", bound=BaseModel)


class Dataset(Strict):
    """A raw data set: the module of `tasks.datasets` that obtains it and the one that reads its format."""

    source: Annotated[str, choice("source", lambda: list(SOURCES))]
    obtain: dict[str, Any]
    """The source's own options (its `ObtainOptions`), such as the scale and seed of generated data."""
    format: Annotated[str, choice("format", lambda: list(FORMATS))]
    read: dict[str, object]
    """The format's own options (its `ReadOptions`), such as the columns of a user's own file."""
    replica_of: Name | None = None
    """The published data set that generated data imitate, of networks the pair; `part_of`: that these are some of."""
    part_of: Name | None = None

    @property
    def is_own(self) -> bool:
        """Whether these are a user's own data, which no other user may fetch."""
        return self.source == "custom"

    def own_files(self) -> dict[str, Path]:
        """The user's own files by what they hold: of a user's own data, and empty for published data."""
        tables = ("interactions", "users", "social") if self.is_own else ()
        return {table: Path(self.obtain[table]).expanduser() for table in tables if self.obtain.get(table)}


class Processed(Strict):
    """A data set under a protocol: which rows are kept, how they are split, which user features there are."""

    dataset: str
    protocol: Annotated[str, choice("protocol", lambda: list(PROTOCOLS))]
    options: dict[str, Any]
    """The protocol's own options (its `Options`)."""


class Words(Strict):
    """The user features of a processed data set as word vectors (DP-VAE's metadata)."""

    data: str
    vectors: Literal["glove", "hashed"]
    """Published ones, from a file that is placed or in the mirror, or ones hashed from the words' spelling."""
    dimension: Annotated[int, Field(ge=1, le=50)]
    """Numbers per attribute: the size of a user's latent vector. GloVe's have 50."""
    seed: Annotated[int, Field(ge=0)]
    """Of hashed vectors, also those of words that GloVe's file has not."""


class Evaluation(Strict):
    """How rankings are scored. Where ratings are predicted nothing is ranked: no `k`, and no use of the rest."""

    k: Cutoffs
    """Cut-offs of all metrics; empty where ratings are predicted."""
    negatives: Annotated[int, Field(ge=1)] | None
    """Unobserved items next to each held-out one in the sampled protocol of top-k lists; null for other tasks."""
    seed: Annotated[int, Field(ge=0)]
    """Of those negatives and of the order of equal scores."""
    recall: Literal["relevant", "reachable"]
    """What the hits of a list are divided by: the held-out items, or those of them that a list so long can hold."""
    full_rows: bool = False
    """Whether lists of all items are judged by whole rows, too, what was learned from included (protocol `whole`)."""


class Training(Strict):
    """How validation ends a training run."""

    patience: Annotated[int, Field(ge=1)]
    """Epochs without a new best on validation after which training stops."""
    validation_k: Annotated[int, Field(ge=1)] | None
    """Cut-off of validation's metric (NDCG of lists, recall of next items); null where it has none (ratings)."""


class Experiment(Strict):
    """One system on one data set; its seeds and sweep points run inside its train stage."""

    suite: Name
    """Whose file it stands in; `load` fills this in."""
    data: str
    features: Annotated[str, Field(pattern=r"^(processed|perturbed|words|embeddings|aligned)/[a-z0-9-]+$")]
    model: Annotated[str, choice("model", lambda: list(MODELS))]
    """The class that is trained (`tasks.models.MODELS`)."""
    system: Name = Field(default_factory=lambda content: content["model"])
    """What results, tables and claims call the model as it is set here; by default the model's name."""
    seeds: Seeds
    """Where ratings are predicted, these are also the folds that are tested, counted from 0."""
    sweep_seeds: Annotated[int, Field(ge=1)] | None = None
    """At sweep points so many of them, the first ones; null: all."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Of this experiment; null: that of the suite."""
    noise: Literal["secure"] | None = None
    """Secure: from the operating system, so that results cannot be repeated; null: from the seeds, for research."""
    chosen_on_test: Literal[True] | None = None
    """Whether every epoch is run and tested, and each metric's best one is measured, too (`chosen-on-test/...`)."""
    tuned_elsewhere: Literal[True] | None = None
    """Whether its configuration was chosen on other data or by a rule, so that ε is not conditional on it."""
    config: dict[str, Any] = Field(default_factory=dict)
    """The model's own; where ratings are predicted also `sensitive_share`, of ratings that users keep to themselves."""
    sweep: list[dict[str, Any]] = Field(default_factory=list)
    """Settings next to the base one: each overrides keys of `config`, or `features_epsilon`, the budget of perturbed
    features (by default the first of `perturbed`); of perturbed networks also the other budgets."""

    def settings(self, names: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
        """Setting name -> model configuration; the first is `base`, a sweep point is named `key=value,...`.

        names: key -> what it is called in names of settings, if otherwise.
        """
        names, points = names or {}, {BASE: self.config}
        for override in self.sweep:
            point = {names.get(key, key): "none" if value is None else value for key, value in override.items()}
            points[",".join(f"{key}={value}" for key, value in point.items())] = self.config | override
        return points

    def seeds_at(self, setting: str) -> list[int]:
        """The seeds that are run at a setting."""
        return self.seeds if setting == BASE else self.seeds[: self.sweep_seeds]


class About(Strict):
    """What a report says of its data beyond what is computed."""

    part: str
    """What part of the data set this is, as a sentence; empty where it is whole."""
    limits: str
    """What these data can and cannot show, as paragraphs with an empty line between them; empty: nothing special."""
    real: str | None = None
    """Of a replica's suite: the title of the suite on the data that it stands for; nothing else here is said of it."""


class Defaults(Strict):
    """What the entries of a section have unless they say otherwise, key by key: nothing below a key is merged."""

    experiments: dict[str, Any] = Field(default_factory=dict)
    embeddings: dict[str, Any] = Field(default_factory=dict)
    aligned: dict[str, Any] = Field(default_factory=dict)


class Suite(Strict):
    """One report, of a paper or of the demo: what the files of its folder say, with `defaults` filled in."""

    title: str
    paper: Name | None
    """Whose tables, figures and claims the report has, and whose printed numbers stand next to the suite's (`paper` in
    data/reference/paper_tables.csv); null: none."""
    data: str
    counts: Name | None = None
    """All that `data` is a part or a replica of, by its protocol: counted next to the paper's, never trained on."""
    splits: fields.DistinctNames = Field(default_factory=list)
    """Its data, split otherwise: every system is run on them, too, at `base`; with `sweep_splits` at every setting."""
    sweep_splits: Literal[True] | None = None
    ceilings: dict[Name, Name] = Field(default_factory=dict)
    """Private experiment -> the experiment that is its system without privacy, with which it is compared."""
    task: Annotated[str, choice("task", lambda: list(TASKS))]
    """What systems are judged by: users' lists, the next item of sequences, ratings, or what users' embeddings tell."""
    about: About
    evaluation: Evaluation
    training: Training
    tuning: Tuning
    attack: Annotated[Attack, Field(discriminator="kind")] | None
    """What an attacker tries on everything that the suite's systems release."""
    resources: dict[str, dict[Literal["memory_mb", "gpus"], int]] | None = None
    """What a unit of a stage (`train@gerai-bpr`), or of its kind (`train`), needs of a worker; it decides no result."""
    training_audit: TrainingAudit | None
    """Which private training runs are audited as a whole; null for none."""
    defaults: Defaults = Field(default_factory=Defaults)
    embeddings: dict[Name, NetworkEmbeddings] = Field(default_factory=dict)
    """Networks that are embedded alone, in suites whose task is embedding."""
    aligned: dict[Name, Alignment] = Field(default_factory=dict)
    """Pairs of networks that are aligned, there too."""
    experiments: dict[Name, Experiment]
    inherited: frozenset[str] = Field(default_factory=frozenset)
    """Keys that entries have from `defaults`, such as `experiments.gerai-bpr.seeds`; `load` fills this in."""

    @property
    def attack_kind(self) -> AttackKind | None:
        """What the kind of its attack means."""
        return None if self.attack is None else ATTACKS[self.attack.kind]

    def runs(self, experiment: Experiment, setting: str) -> dict[int, str]:
        """Number of every run of a setting (`tasks.evaluation.run_numbers`) -> the processed data it is of."""
        data = [experiment.data]
        if (setting == BASE or self.sweep_splits) and experiment.data == self.data:
            data += self.splits
        return {split * APART + seed: name for split, name in enumerate(data) for seed in experiment.seeds_at(setting)}

    def training_of(self, experiment: Experiment) -> Training:
        """How validation ends the runs of an experiment."""
        return self.training.model_copy(update={"patience": experiment.patience or self.training.patience})


class Data(Strict):
    """The root's params.yaml: data, as suites share them."""

    datasets: dict[Name, Dataset]
    processed: dict[Name, Processed]
    perturbed: dict[Name, Perturbed]
    words: dict[Name, Words]

    def publication(self, data: str) -> str:
        """The published data set that processed data were made from; of generated data the replica's own name."""
        return self.datasets[self.processed[data].dataset].source.replace("_", "-")

    def stands_for(self, data: str) -> str:
        """The published data set that processed data are a replica or a part of; empty where they are no other's."""
        dataset = self.datasets[self.processed[data].dataset]
        return dataset.replica_of or dataset.part_of or ""


class Params(Data):
    """The root's params.yaml and those of all suites."""

    suites: dict[str, Suite]

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """Those of all suites; no two have the same name."""
        return {name: experiment for suite in self.suites.values() for name, experiment in suite.experiments.items()}

    @cached_property
    def embeddings(self) -> dict[str, NetworkEmbeddings]:
        """Those of all suites; no two have the same name."""
        return {name: embedding for suite in self.suites.values() for name, embedding in suite.embeddings.items()}

    @cached_property
    def aligned(self) -> dict[str, Alignment]:
        """Those of all suites; no two have the same name."""
        return {name: alignment for suite in self.suites.values() for name, alignment in suite.aligned.items()}

    def features_epsilon(self, experiment: Experiment, config: dict[str, Any]) -> float | None:
        """The budget of the features that a setting reads; None for true features, as they are or in word vectors."""
        layer, name = experiment.features.split("/")
        if layer != "perturbed":
            return None
        perturbed = self.perturbed[name]
        base = perturbed.epsilon[0] if isinstance(perturbed, PerturbedFeatures) else perturbed.features_epsilon
        return float(config.get("features_epsilon", base))

    def features_of(self, experiment: Experiment, data: str) -> str:
        """Where a run on `data` reads users' features, as `Experiment.features` says it for the experiment's own data.

        Features that count interactions differ from split to split, and were then perturbed or embedded for each.
        """
        layer, name = experiment.features.split("/")
        if data == experiment.data or layer not in ("processed", "perturbed", "words"):
            return experiment.features
        if layer == "processed":
            return f"processed/{data}"
        entries: Mapping[str, Perturbed | Words] = self.perturbed if layer == "perturbed" else self.words
        return f"{layer}/{next((other for other, entry in entries.items() if entry.data == data), name)}"

    def networks_of(self, aligned: Alignment) -> str:
        """Where the networks that are aligned are read: `processed/<name>` or `perturbed/<name>`."""
        return aligned.of if aligned.embeddings is None else self.embeddings[aligned.embeddings].networks

    def networks_settings(self, networks: str) -> list[str]:
        """The settings of `processed/<name>`, which has one, or of the release `perturbed/<name>`; the first is `base`.

        Raises:
            ConfigurationError: it releases no networks.
        """
        layer, name = networks.split("/")
        if layer == "processed":
            return [BASE]
        release = self.perturbed[name]
        if isinstance(release, PerturbedFeatures):
            raise ConfigurationError(f"perturbed.{name}: has the features of a table of users, not networks")
        return list(release.settings())


def entry(section: str, name: str, table: Mapping[str, _Entry]) -> _Entry:
    """What the parameters have under a name.

    Raises:
        ConfigurationError: there is no such name.
    """
    if name not in table:
        file = f"{'suites/*/' if section in Defaults.model_fields else ''}params.yaml: "
        where = section if section == "suites" else file + section
        raise ConfigurationError(f"{where}: there is no {name!r}; known: {', '.join(sorted(table))}")
    return table[name]


def attack_of(suite: str, params: Params, kind: type[_Kind]) -> _Kind:
    """How a suite is attacked.

    Raises:
        ConfigurationError: there is no such suite, or it is not attacked in this way.
    """
    attack = entry("suites", suite, params.suites).attack
    if isinstance(attack, kind):
        return attack
    (name,) = get_args(kind.model_fields["kind"].annotation)
    file, what = own_file(suite, key="attack"), ATTACKS[name].what
    raise ConfigurationError(f"{file}: attack: is not of kind {name}; there are no {what}")


def load(path: Path = PARAMS_FILE) -> Params:
    """Read and validate params.yaml and the files of every suite: their structure.

    `references.check` adds what entries say of one another, and the keys of models, data sets and protocols.

    Raises:
        ConfigurationError: one line that names the file and its first wrong key.
    """
    root = _validate(messages.read(path), Data, lambda _: path, frozenset())
    names = {file.parent.name for file_name in OWN_FILES for file in (path.parent / SUITES).glob(f"*/{file_name}")}
    return Params(**dict(root), suites={name: _suite(name, path) for name in sorted(names)})


def own_file(suite: str, path: Path = PARAMS_FILE, key: str = "") -> Path:
    """The suite's file in which a key stands, such as `attack.k`; `path`: the root's file."""
    name = next((name for name, sections in OWN_FILES.items() if key.partition(".")[0] in sections), "params.yaml")
    return path.parent / SUITES / suite / name


def _suite(name: str, path: Path) -> Suite:
    folder, raw = path.parent / SUITES / name, dict[str, Any]()
    if not re.fullmatch(NAME, name):
        raise ConfigurationError(f"{folder}: no name of a suite; it takes small letters, digits and hyphens")
    for file in OWN_FILES:
        content = messages.read(folder / file)
        if not isinstance(content, dict):
            raise ConfigurationError(f"{folder / file}: not a table of sections")
        for section in content:
            if (right := own_file(name, path, str(section))) != folder / file:
                raise ConfigurationError(f"{folder / file}: {section}: stands in {right}")
        raw |= content
    filled, inherited = _fill_in(raw, name, folder / "params.yaml")
    suite = _validate(filled, Suite, lambda key: own_file(name, path, key), inherited)
    return suite.model_copy(update={"inherited": inherited})


def _validate(raw: object, kind: type[_Options], file: Callable[[str], Path], inherited: frozenset[str]) -> _Options:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        problem = messages.first_error(error)
        raise ConfigurationError(f"{file(problem.key)}: {locate(*problem, inherited)}") from error


def _fill_in(raw: dict[str, Any], suite: str, path: Path) -> tuple[dict[str, object], frozenset[str]]:
    """A suite's file with all keys of its entries, and which `defaults` has; no table: left for the types to refuse."""

    def table(content: object) -> dict[str, object]:
        return content if isinstance(content, dict) else {}

    filled, inherited = dict(raw), set[str]()
    for section in Defaults.model_fields:
        shared, entries = table(table(raw.get("defaults")).get(section)), raw.get(section)
        if "suite" in shared:
            raise ConfigurationError(f"{path}: defaults.{section}.suite: unknown key")
        if shared and not entries:
            raise ConfigurationError(f"{path}: defaults.{section}: there are no {section} that could have them")
        for name, entry in table(entries).items():
            if "suite" in table(entry):
                raise ConfigurationError(f"{path}: {section}.{name}.suite: unknown key")
            if isinstance(entry, dict):
                inherited |= {f"{section}.{name}.{key}" for key in shared.keys() - entry.keys()}
                filled[section] = filled[section] | {name: {"suite": suite} | shared | entry}
    return filled, frozenset(inherited)


def locate(key: str, text: str, inherited: frozenset[str]) -> str:
    """`experiments.X.seeds`, with what is wrong, if anything; `defaults.experiments.seeds` if X has it from there."""
    section, *below = key.split(".")
    if ".".join((section, *below[:2])) in inherited:
        key, text = ".".join(("defaults", section, *below[1:])), text and f"{text} (in {below[0]})"
    return ": ".join(filter(None, (key, text)))
