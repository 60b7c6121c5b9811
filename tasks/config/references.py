"""What no type says about params.yaml and the suites' files.

Which names must be known, which values must agree, and what models, data sets and protocols say of their own keys.
`check` looks at everything before anything runs, and the first mistake is refused. No stage that computes imports this
module: it knows all plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.audits import AUDITS, of_model
from tasks.audits.lines import AUDITED_LINES
from tasks.config.audited import LINES, released_lines, unexplained
from tasks.config.fields import PerturbedFeatures, model_config
from tasks.config.messages import options
from tasks.config.network_references import (
    Wrong,
    check_layer,
    check_name,
    check_networks,
    check_read,
    check_seeds,
    makes_networks,
)
from tasks.config.networks import OF_ATTRIBUTES
from tasks.config.params import PARAMS_FILE, Experiment, Params, Suite, locate, own_file
from tasks.config.planned import has_budget, is_private
from tasks.config.tasks import TASKS, resolve
from tasks.core.errors import ConfigurationError
from tasks.datasets import FORMATS, SOURCES
from tasks.models import MODELS, model_class
from tasks.papers import PAPERS, PROTOCOLS

if TYPE_CHECKING:
    from tasks.models.base import Model


def check(params: Params, path: Path = PARAMS_FILE) -> None:
    """Both `check_references` and `check_configs`."""
    check_references(params, path)
    check_configs(params, path)


def check_references(params: Params, path: Path = PARAMS_FILE) -> None:
    """Whether the entries of all files agree with one another; imports no plug-in."""
    with _in_file(lambda _: path):
        _check_root(params)
    taken: dict[str, str] = {}
    for name, suite in params.suites.items():
        with _in_file(partial(own_file, name, path), suite.inherited):
            check_suite(suite, params, taken)
        taken |= dict.fromkeys(suite.experiments, name)


@contextmanager
def _in_file(file: Callable[[str], Path], inherited: frozenset[str] = frozenset()) -> Iterator[None]:
    """Puts the file of the wrong key before the message."""
    try:
        yield
    except Wrong as wrong:
        raise ConfigurationError(f"{file(wrong.key)}: {locate(wrong.key, wrong.text, inherited)}") from None


def check_configs(params: Params, path: Path = PARAMS_FILE) -> None:
    """Validate the options of every data set, protocol and experiment against the module that takes them.

    This imports the models that are named: seconds, not milliseconds.
    """
    _check_datasets(params, path)
    for name, release in params.perturbed.items():
        if release.mechanism not in LINES:
            wrong = f"{release.mechanism!r} has no lines; add them to LINES of tasks/config/audited.py"
            raise ConfigurationError(f"{path}: perturbed.{name}.mechanism: {wrong}")
        for reason in unexplained(released_lines(release), {}, AUDITS):
            raise ConfigurationError(f"{path}: perturbed.{name}: {reason}")
    for name, embedding in params.embeddings.items():
        where = locate(f"embeddings.{name}.config", "", params.suites[embedding.suite].inherited)
        file, cls = own_file(embedding.suite, path), model_class(embedding.model)
        model = cls(options(cls.Config, embedding.config, where, file))
        _check_ledger(f"{file}: embeddings.{name}: {embedding.model!r}", model, embedding.model, embedding.config)
    for name, pair in params.aligned.items():
        aligner = import_module("tasks.models.alignment.aligner")
        where = locate(f"aligned.{name}.config", "", params.suites[pair.suite].inherited)
        options(aligner.AlignmentConfig, pair.config, where, own_file(pair.suite, path))
    for name, experiment in params.experiments.items():
        with _in_file(partial(own_file, experiment.suite, path)):
            _check_model(f"experiments.{name}", experiment, params)
        _check_settings(name, experiment, params.suites[experiment.suite], own_file(experiment.suite, path))
    for name, suite in params.suites.items():
        with _in_file(partial(own_file, name, path)):
            _check_ceilings(suite)
    for audit in sorted(AUDITED_LINES.keys() - AUDITS):  # of a part of a mechanism, or a line that fitted models have
        raise ConfigurationError(f"tasks/audits/lines.py: {audit}: is not among AUDITS of tasks/audits")


def _check_datasets(params: Params, path: Path) -> None:
    for name, dataset in params.datasets.items():
        source, format_ = resolve(SOURCES[dataset.source]), resolve(FORMATS[dataset.format])
        options(source.ObtainOptions, dataset.obtain, f"datasets.{name}.obtain", path)
        options(format_.ReadOptions, dataset.read, f"datasets.{name}.read", path)
        if dataset.replica_of and not source.SOURCE.synthetic and not dataset.is_own:
            raise ConfigurationError(f"{path}: datasets.{name}.replica_of: {dataset.source!r} generates nothing")
        if dataset.part_of and source.SOURCE.synthetic:
            raise ConfigurationError(f"{path}: datasets.{name}.part_of: {dataset.source!r} is generated")
    for name, processed in params.processed.items():
        protocol = import_module(PROTOCOLS[processed.protocol])
        options(protocol.Options, processed.options, f"processed.{name}.options", path)


def _check_model(where: str, experiment: Experiment, params: Params) -> None:
    """What the model can do."""
    cls, model = model_class(experiment.model), repr(experiment.model)
    networks = import_module("tasks.models.user_networks.base")
    layer, read = experiment.features.split("/")
    of_networks = TASKS[params.suites[experiment.suite].task].networks
    if of_networks and not issubclass(cls, networks.Embedder):
        raise Wrong(f"{where}.model", f"{model} does not embed users")
    if not of_networks and issubclass(cls, networks.Embedder):
        raise Wrong(f"{where}.model", f"{model} embeds users, which is for suites whose task is embedding")
    if of_networks and issubclass(cls, networks.PairEmbedder) != (layer == "aligned"):
        wanted = "aligned" if issubclass(cls, networks.PairEmbedder) else "processed, perturbed or embeddings"
        raise Wrong(f"{where}.features", f"{model} reads {wanted}")
    if layer == "aligned" and (reason := unaccounted_anchors(read, params)):
        raise Wrong(f"{where}.features", reason)
    if experiment.chosen_on_test and not issubclass(cls, import_module("tasks.models.training").EpochModel):
        raise Wrong(f"{where}.chosen_on_test", f"{model} has no epochs to choose from")


def _check_settings(name: str, experiment: Experiment, suite: Suite, file: Path) -> None:
    """Of the configuration and its ledger at every setting; what only takes over embeddings has none."""
    if experiment.features.startswith("embeddings/"):
        return
    cls = model_class(experiment.model)
    for setting, config in experiment.settings().items():
        chosen = options(
            cls.Config, model_config(config), locate(f"experiments.{name}.config", "", suite.inherited), file
        )
        if experiment.noise == "secure" and (reason := cls(chosen).insecure()):
            where = locate(f"experiments.{name}.noise", "", suite.inherited)
            raise ConfigurationError(f"{file}: {where}: {experiment.model!r} at {setting}: {reason}")
        what = f"{file}: experiments.{name}: {experiment.model!r} at {setting}"
        _check_ledger(what, cls(chosen), experiment.model, config)


def _check_ledger(what: str, model: Model, name: str, config: dict[str, object]) -> None:
    """Of a model before it is fitted; a line that only its fitted ledger adds to these, `collect` refuses."""
    if not model.ledger() and has_budget(config):
        raise ConfigurationError(f"{what}: has a budget, and no line of its ledger says so before it is fitted")
    for problem in unexplained(model.ledger(), config, of_model(name, config)):
        raise ConfigurationError(f"{what}: {problem}")


def unaccounted_anchors(aligned: str, params: Params) -> str:
    """Why what found the anchors would be in no ledger; empty where it is in that of the embeddings."""
    pair = params.aligned[aligned]
    assert pair.embeddings is not None, "check_references lets no other pass"
    model = params.embeddings[pair.embeddings].model
    embedder: Any = model_class(model)
    if pair.anchors not in OF_ATTRIBUTES or "feature" in embedder.reads:
        return ""
    return (
        f"aligned.{aligned} hands on anchors found by attributes, which {model!r} does not read, so that no ledger "
        "would have them; embed by a model that reads attributes, or set `anchors` to another way"
    )


def _check_root(params: Params) -> None:
    """What is wrong with the root's params.yaml."""
    published = {name.replace("_", "-"): module for name, module in FORMATS.items()}
    for name, dataset in params.datasets.items():
        for key in ("replica_of", "part_of"):
            if (original := getattr(dataset, key)) is not None:
                check_name(f"datasets.{name}.{key}", original, published, "published data set")
        if dataset.replica_of and dataset.part_of:
            raise Wrong(f"datasets.{name}.part_of", "must be left out where replica_of is given")
    for name, processed in params.processed.items():
        check_name(f"processed.{name}.dataset", processed.dataset, params.datasets, "data set")
    for name, perturbed in params.perturbed.items():
        check_name(f"perturbed.{name}.data", perturbed.data, params.processed, "processed data set")
        protocol = params.processed[perturbed.data].protocol
        if makes_networks(protocol) == isinstance(perturbed, PerturbedFeatures):
            what = f"{perturbed.mechanism!r} is not for data whose protocol is {protocol!r}"
            raise Wrong(f"perturbed.{name}.mechanism", what)
    for name, table in params.words.items():
        check_name(f"words.{name}.data", table.data, params.processed, "processed data set")


def check_suite(suite: Suite, params: Params, taken: dict[str, str]) -> None:
    """What is wrong with the file of a suite; taken: experiment -> suite, of the suites before this one."""
    check_name("data", suite.data, params.processed, "processed data set")
    if suite.paper is not None:
        check_name("paper", suite.paper, PAPERS, "paper")
    _check_counts(suite, params)
    _check_splits(suite, params)
    _check_task(suite)
    if (chosen := suite.tuning.of) is not None:
        check_name("tuning.of", chosen, params.suites, "suite")
        if params.suites[chosen].tuning.of:
            raise Wrong("tuning.of", f"{chosen} has none of its own")
    check_networks(suite, params)
    for audited in suite.training_audit.experiments if suite.training_audit else ():
        check_name("training_audit.experiments", audited, suite.experiments, "experiment of this suite")
    for where, named in suite.attack_kind.named(suite.attack).items() if suite.attack_kind else ():
        for name in named:
            check_name(f"attack.{where}", name, suite.experiments, "experiment of this suite")
            if (data := suite.experiments[name].data) != suite.data:
                raise Wrong(f"experiments.{name}.data", f"attack.{where} must be on {suite.data}, not on {data}")
    for key, experiment in suite.experiments.items():
        where = f"experiments.{key}"
        if key in taken:
            raise Wrong(where, f"the suite {taken[key]!r} has an experiment of this name")
        check_name(f"{where}.data", experiment.data, params.processed, "processed data set")
        if experiment.system != experiment.model and experiment.system in MODELS:
            raise Wrong(f"{where}.system", f"{experiment.system!r} is another model's name")
        if experiment.chosen_on_test and not TASKS[suite.task].tested_by_epoch:
            raise Wrong(f"{where}.chosen_on_test", f"epochs are not tested in a suite whose task is {suite.task}")
        if suite.tuning.seed in experiment.seeds:
            raise Wrong(f"{where}.seeds", f"{suite.tuning.seed} is the tuning seed, which no result may use")
        if any(value is None for point in experiment.sweep for value in point.values()):
            raise Wrong(f"{where}.sweep", "has a null; what has no value is an experiment of its own")
        if experiment.sweep_seeds is not None and experiment.sweep_seeds > len(experiment.seeds):
            raise Wrong(f"{where}.sweep_seeds", f"{experiment.sweep_seeds} of {len(experiment.seeds)} seeds")
        _check_noise(where, experiment, suite.task, params)
        if not TASKS[suite.task].networks:
            _check_features(where, experiment, suite, params)
        check_layer(where, experiment, suite.task, params)
        _check_ratings(where, experiment, suite.task, params)


def _check_counts(suite: Suite, params: Params) -> None:
    """Counts of anything but the whole of what the suite's data are a part or a replica of."""
    if suite.counts is None:
        return
    if TASKS[suite.task].networks:
        raise Wrong("counts", f"there are none in a suite whose task is {suite.task}")
    check_name("counts", suite.counts, params.processed, "processed data set")
    protocols = {params.processed[name].protocol for name in (suite.counts, suite.data)}
    complete = not params.stands_for(suite.counts) and len(protocols) == 1
    if not complete or params.publication(suite.counts) != params.stands_for(suite.data):
        raise Wrong(
            "counts", f"{suite.counts} must be all of what {suite.data} is a part or a replica of, by its protocol"
        )


def _check_splits(suite: Suite, params: Params) -> None:
    """Splits that are not those of the suite's data, and systems that would not be run as often as others."""
    if suite.splits and (TASKS[suite.task].networks or TASKS[suite.task].folds):
        raise Wrong("splits", f"there are none in a suite whose task is {suite.task}")
    if suite.sweep_splits and not suite.splits:
        raise Wrong("sweep_splits", "there are no splits")
    for name in suite.splits:
        check_name("splits", name, params.processed, "processed data set")
        chosen, other = (params.processed[each].model_dump() for each in (suite.data, name))
        seeds = [each["options"].pop("split_seed", None) for each in (chosen, other)]
        for each in (chosen, other):
            each["options"].pop("tie_seed", None)
        if chosen != other or seeds[0] == seeds[1]:
            raise Wrong(
                "splits", f"{name} must be {suite.data} with another split_seed (and tie_seed), and nothing else"
            )
    seeds_of = {key: entry.seeds for key, entry in suite.experiments.items() if entry.data == suite.data}
    for key, seeds in seeds_of.items() if suite.splits else ():
        if seeds != next(iter(seeds_of.values())):
            what = f"where there are splits, all systems on {suite.data} have the same"
            raise Wrong(f"experiments.{key}.seeds", what)


def _check_ceilings(suite: Suite) -> None:
    """Systems without privacy that are called a ceiling of what is not private, or not on the same data."""
    for name, ceiling in suite.ceilings.items():
        for each in (name, ceiling):
            check_name(f"ceilings.{name}", each, suite.experiments, "experiment of this suite")
        private, public = (suite.experiments[each] for each in (name, ceiling))
        if not is_private(private) or is_private(public):
            raise Wrong(f"ceilings.{name}", f"{name} must spend a finite budget, and {ceiling} none")
        if private.data != public.data:
            raise Wrong(f"ceilings.{name}", f"{ceiling} is on {public.data}, not on {private.data}")


def _check_task(suite: Suite) -> None:
    """What a suite says of rankings that its task has not."""
    evaluation, keys = suite.evaluation, TASKS[suite.task].keys
    for key, nothing, absent in (
        ("evaluation.negatives", "null", evaluation.negatives is None),
        ("training.validation_k", "null", suite.training.validation_k is None),
        ("evaluation.k", "empty", not evaluation.k),
    ):
        if absent == (key in keys):
            raise Wrong(key, f"must {'not ' * absent}be {nothing} in a suite whose task is {suite.task}")
    if "evaluation.recall" not in keys and evaluation.recall != "relevant":
        raise Wrong("evaluation.recall", f"must be relevant in a suite whose task is {suite.task}")
    if (kind := suite.attack_kind) is not None and kind.task not in (None, suite.task):
        raise Wrong("attack.kind", f"there are no {kind.what} in a suite whose task is {suite.task}")


def _check_ratings(where: str, experiment: Experiment, task: str, params: Params) -> None:
    """Folds and shares of sensitive ratings, of experiments that predict ratings."""
    for setting, config in experiment.settings().items():
        share = config.get("sensitive_share")
        if not TASKS[task].folds:
            if share is not None:
                raise Wrong(where, f"sensitive_share is for suites whose task is rating (setting {setting})")
        elif not isinstance(share, float | int) or isinstance(share, bool) or not 0 <= share <= 1:
            raise Wrong(where, f"sensitive_share must be given, from 0 to 1 (is {share!r} at setting {setting})")
    folds = params.processed[experiment.data].options.get("folds", 0)
    if TASKS[task].folds and max(experiment.seeds) >= folds:
        raise Wrong(f"{where}.seeds", f"{max(experiment.seeds)} is not among the {folds} folds of {experiment.data}")


def _check_noise(where: str, experiment: Experiment, task: str, params: Params) -> None:
    """Secure noise on features or networks whose own noise can be drawn again."""
    if experiment.noise is None:
        return
    if TASKS[task].networks:
        raise Wrong(f"{where}.noise", "what embeds networks draws none; say secure in params.yaml's perturbed")
    layer, name = experiment.features.split("/")
    if layer == "perturbed" and name in params.perturbed and params.perturbed[name].noise != experiment.noise:
        raise Wrong(f"{where}.noise", f"secure, but the features are not: perturbed.{name} has no noise: secure")


def _check_features(where: str, experiment: Experiment, suite: Suite, params: Params) -> None:
    """Features of a table of users that are not there, or that some run would not find."""
    layer, _ = experiment.features.split("/")
    if layer not in ("processed", "perturbed", "words"):
        return
    if layer != "perturbed" and any("features_epsilon" in config for config in experiment.settings().values()):
        raise Wrong(f"{where}.sweep", f"features_epsilon is for perturbed features, not for {experiment.features!r}")
    read = experiment.features, experiment.data, experiment.seeds
    check_read(where, "features", *read, params, networks=False)
    if layer != "perturbed":
        return
    for setting, config in experiment.settings().items():
        budget = params.features_epsilon(experiment, config)
        for data in suite.runs(experiment, setting).values():
            other = params.features_of(experiment, data).partition("/")[2]
            perturbed = params.perturbed[other]
            if isinstance(perturbed, PerturbedFeatures) and budget not in perturbed.epsilon:
                raise Wrong(f"{where}.sweep", f"features_epsilon {budget} is not in perturbed.{other}.epsilon")
            check_seeds(where, experiment.seeds, perturbed.seeds, f"perturbed.{other}")
