"""Every private line of a ledger has an audit that is of it, or a reason why it has none; without, it is refused."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from tasks.audits import AUDITS, OF_CODE, of_model
from tasks.audits.lines import AUDITED_LINES
from tasks.config.audited import LINES, released_lines, unexplained
from tasks.config.fields import FEATURES, PerturbedFeatures, model_config
from tasks.config.params import Params, load
from tasks.config.references import check_configs
from tasks.core.errors import ConfigurationError
from tasks.models import model_class
from tasks.pipeline.table_audits import OF_FEATURES, OF_NETWORKS, releases_behind
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits.unaudited import REASONS, TRUE_OF, is_private
from tasks.privacy.terms import Mechanism
from tasks.results.tables import read_table
from tasks.stages.collect import unexplained_lines
from tests.models.contract import CONFIGS
from tests.parameters import ROOT
from tests.results.made import COMMITTED, committed

PARAMS = load(ROOT / "params.yaml")
WITHOUT_BUDGET = {"none", "blurme", "adversarial-training", "no-aggregation"}
SPENDS_NOTHING = {"left-out", "sensitive-local", "sensitive-unused"}
OLDER = {"privsr-epinions", "privsr-yelp-hin"}
"""Results that are older than lines by observer."""
ONCE_FITTED = {("submissions-gaussian", observer) for observer in ("recommender-of-submissions", "co-raters")}
"""Lines that a model has only once it knows its data."""
NOTHING: dict[str, dict[str, Any]] = {
    key: {} for key in ("datasets", "processed", "perturbed", "embeddings", "aligned", "experiments", "suites")
}

PLANTED = LedgerEntry(
    protects="interaction", unit="interaction", neighbouring="replace", mechanism="functional", accounting="rigorous",
    claimed_epsilon=2.0, claimed_delta=0.0, accounted_epsilon=2.0, accounted_delta=0.0,
)  # fmt: skip
"""A line of a private model that someone writes, under the id of a mechanism that has a reason."""


def systems() -> Iterator[tuple[Params, list[LedgerEntry], list[str]]]:
    """Parameters that have one system or perturbation alone, at one setting: its lines, and its audits."""
    for name, release in PARAMS.perturbed.items():
        of = OF_FEATURES if isinstance(release, PerturbedFeatures) else OF_NETWORKS
        yield PARAMS.model_copy(update=NOTHING | {"perturbed": {name: release}}), released_lines(release), [*of]
    for name, experiment in PARAMS.experiments.items():
        cls = model_class(experiment.model)
        for config in experiment.settings().values():
            if audits := [audit for audit in of_model(experiment.model, config) if audit not in OF_CODE]:
                lines = cls(cls.Config.model_validate(model_config(config))).ledger()
                alone = experiment.model_copy(update={"config": config, "sweep": []})
                suite = PARAMS.suites[experiment.suite].model_copy(update={"ceilings": {}})
                of_suite = {"experiments": {name: alone}, "suites": {experiment.suite: suite}}
                yield PARAMS.model_copy(update=NOTHING | of_suite), lines, audits


AUDITED: dict[tuple[str, ...], tuple[Params, LedgerEntry]] = {}
"""All audits of one line of one system -> the system and the line."""
for _params, _lines, _audits in systems():
    for _line in _lines:
        _about = _line.mechanism, _line.observer, _line.accounting, _line.unit
        _of = tuple(name for name in _audits if AUDITED_LINES[name] == _about[: len(AUDITED_LINES[name])])
        if _of:
            AUDITED.setdefault(_of, (_params, _line))


@pytest.mark.parametrize("audits", AUDITED, ids=", ".join)
def test_a_line_whose_audit_is_gone_is_refused_before_anything_trains(
    audits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    params, line = AUDITED[audits]
    check_configs(params)
    for name in audits:
        monkeypatch.delitem(AUDITS, name)
    with pytest.raises(ConfigurationError, match=f"{line.mechanism}.*: has neither an audit nor a reason why not"):
        check_configs(params)


@pytest.mark.parametrize("name", AUDITS)
def test_no_audit_can_be_taken_out_of_the_registry(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of a part of a mechanism either, or of a line that a model has once it is fitted."""
    monkeypatch.delitem(AUDITS, name)
    with pytest.raises(ConfigurationError, match=f"{name}: is not among AUDITS"):
        check_configs(PARAMS.model_copy(update=NOTHING))


@pytest.mark.parametrize("mechanism", ["personal-sgd", "aggregates-training", "exponential-words"])
def test_no_reason_says_what_is_audited_where_nothing_is(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits that were taken out of every table."""
    (line, *_) = (line for _, line in AUDITED.values() if line.mechanism == mechanism)
    audits = [name for name, of in AUDITED_LINES.items() if of[0] == mechanism]
    assert [*unexplained([line], {}, audits)] == []
    for name in audits:
        monkeypatch.delitem(AUDITED_LINES, name)
    assert len([*unexplained([line], {}, ())]) == 1


@pytest.mark.parametrize("accounted", [2.0, None])
@pytest.mark.parametrize("mechanism", [*sorted(REASONS), *sorted(SPENDS_NOTHING)])
def test_no_reason_stands_for_a_line_that_it_is_false_of(mechanism: str, accounted: float | None) -> None:
    line = PLANTED.model_copy(update={"mechanism": mechanism, "accounted_epsilon": accounted})
    is_true = accounted is None and mechanism in REASONS and REASONS[line.mechanism] not in TRUE_OF
    assert len([*unexplained([line], {}, ())]) == (not is_true)
    assert not [*unexplained([line.model_copy(update={"accounted_epsilon": 0.0})], {}, ())]


def test_a_new_model_and_a_new_embedder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what they say themselves, before anything runs."""
    (name, experiment), *_ = ((key, each) for key, each in PARAMS.experiments.items() if each.model == "dp-popularity")
    suites = {experiment.suite: PARAMS.suites[experiment.suite].model_copy(update={"ceilings": {}})}
    system = PARAMS.model_copy(update=NOTHING | {"experiments": {name: experiment}, "suites": suites})
    (key, embedding), *_ = PARAMS.embeddings.items()
    suites = {embedding.suite: PARAMS.suites[embedding.suite].model_copy(update={"ceilings": {}})}
    embedder = PARAMS.model_copy(update=NOTHING | {"embeddings": {key: embedding}, "suites": suites})
    for model, params in ((experiment.model, system), (embedding.model, embedder)):
        check_configs(params)
        monkeypatch.setattr(model_class(model), "ledger", lambda _: [PLANTED])
        with pytest.raises(ConfigurationError, match=f"{PLANTED.mechanism}: has neither an audit nor a reason"):
            check_configs(params)
    monkeypatch.setattr(model_class(experiment.model), "ledger", lambda _: [])
    with pytest.raises(ConfigurationError, match="has a budget, and no line of its ledger says so"):
        check_configs(system)


def test_a_new_perturbation_has_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    (name, release), *_ = ((key, each) for key, each in PARAMS.perturbed.items() if each.mechanism in FEATURES)
    planted = release.model_copy(update={"mechanism": "planted"})
    params = PARAMS.model_copy(update=NOTHING | {"perturbed": {name: planted}})
    with pytest.raises(ConfigurationError, match=f"perturbed.{name}.mechanism: 'planted' has no lines"):
        check_configs(params)
    monkeypatch.setitem(LINES, "planted", lambda *_: [PLANTED])
    with pytest.raises(ConfigurationError, match=f"{PLANTED.mechanism}: has neither an audit nor a reason"):
        check_configs(params)


@pytest.mark.parametrize("model", ["ae", "mf", "svd", "vae"])
def test_no_reason_stands_for_a_setting_that_an_audit_is_of_whatever_the_model(model: str) -> None:
    """Equal budgets under a constant bound are what is audited; of optimal clipping there is no worst case."""
    config = CONFIGS[model] | {"privacy": "dpsgd", "epsilon_max": 1.0, "delta": 1e-5, "clip_norm": 1.0}
    cls = model_class(model)
    for change, problems in (({}, 1), ({"budgets": "uniform"}, 0), ({"privacy": "dpsgd-optimal-clip"}, 0)):
        lines = cls(cls.Config.model_validate(config | change)).ledger()[:1]
        assert (lines[0].mechanism, is_private(lines[0])) == ("personal-sgd", True)
        assert len([*unexplained(lines, config | change, ())]) == problems


@pytest.mark.parametrize("suite", COMMITTED)
def test_every_private_line_is_known_before_it_is_spent_and_has_an_audit_or_a_reason(suite: str) -> None:
    for line in committed(suite).lines:
        experiment = PARAMS.suites[suite].experiments[line.experiment]
        config = experiment.settings().get(line.setting)
        older = suite in OLDER and not line.entry.observer
        if config is None or older or not is_private(line.entry):
            continue  # results may be older than parameters
        audits = (*of_model(experiment.model, config), *OF_FEATURES, *OF_NETWORKS)
        assert [*unexplained([line.entry], config, audits)] == []
        releases = [PARAMS.perturbed[name] for name in releases_behind(experiment.features, PARAMS)]
        expected = [entry for release in releases for entry in released_lines(release)]
        if not experiment.features.startswith("embeddings/"):
            cls = model_class(experiment.model)
            expected += cls(cls.Config.model_validate(model_config(config))).ledger()
        about = line.entry.mechanism, line.entry.observer
        known = {(entry.mechanism, entry.observer) for entry in expected} | ONCE_FITTED
        assert line.entry.accounted_epsilon == 0 or about in known


@pytest.mark.parametrize("suite", [name for name in COMMITTED if name not in OLDER])
def test_collect_refuses_a_line_whose_audit_did_not_run(suite: str) -> None:
    frames = {name: read_table(ROOT / "data/results" / suite, name) for name in ("ledger", "events", "audits")}
    options = PARAMS.suites[suite]
    settings = [[name, key] for name, experiment in options.experiments.items() for key in experiment.settings()]
    present = [row in settings for row in map(list, frames["ledger"].select("experiment", "setting").iter_rows())]
    frames["ledger"] = frames["ledger"].filter(present)  # results may be older than parameters
    assert unexplained_lines(frames, options) == []
    audited = {line.number for line in committed(suite).lines if line.audit} & {*frames["ledger"]["line"]}
    assert len(unexplained_lines(frames | {"audits": frames["audits"].clear()}, options)) == len(audited)


def test_every_mechanism_with_a_budget_has_an_audit_or_a_reason() -> None:
    assert AUDITED_LINES.keys() == AUDITS.keys()
    audited = {line[0] for line in AUDITED_LINES.values()}
    assert set(get_args(Mechanism)) == audited | REASONS.keys() | WITHOUT_BUDGET | SPENDS_NOTHING
    assert not audited & WITHOUT_BUDGET
