"""Every name that params.yaml may use for a plug-in leads to one, and a stage loads those alone that it was told."""

from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from typing import get_args

import pytest

from tasks.attacks import ATTACKERS
from tasks.config.fields import FEATURES, NETWORKS
from tasks.config.tasks import ATTACKS, TASKS, Attack, AttackKind, Task, resolve
from tasks.datasets import FORMATS, SOURCES
from tasks.models import MODELS
from tasks.papers import PROTOCOLS
from tests.command import python
from tests.parameters import ROOT

OURS = sorted((ROOT / "tasks").rglob("*.py"))
REGISTRIES = {
    "attackers": ATTACKERS,
    "formats": FORMATS,
    "mechanisms": FEATURES | NETWORKS,
    "models": MODELS,
    "protocols": PROTOCOLS,
    "sources": SOURCES,
}
UNNAMED = {
    "tasks.config.params": ["tasks.config.references", "tasks.datasets.", "tasks.models.", "tasks.papers.", "torch"],
    "tasks.stages.check": ["great_expectations"],
    "tasks.stages.perturb": ["tasks.stages.perturb_", "tasks.privacy.mechanisms", "tasks.privacy.accounting", "polars"],
    "tasks.stages.evaluators.base": [
        "tasks.stages.evaluators.",
        "tasks.evaluation.next_items",
        "tasks.evaluation.rating",
    ],
}
"""Module -> what it must not load by itself."""


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_name_leads_to_a_plug_in(registry: str) -> None:
    for name, where in REGISTRIES[registry].items():
        module, colon, attribute = where.partition(":")
        actual = import_module(module)
        assert not colon or hasattr(actual, attribute), name


def test_the_types_know_the_names_that_the_registries_have() -> None:
    kinds = {get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(Attack)}
    assert set(ATTACKS) == kinds
    assert not FEATURES.keys() & NETWORKS.keys()


@pytest.mark.parametrize("entry", [*TASKS.values(), *ATTACKS.values()])
def test_every_task_and_kind_of_attack_leads_to_its_parts(entry: Task | AttackKind) -> None:
    for field in ("evaluator", "checks", "collects", "stages", "each", "table"):
        if target := getattr(entry, field, None):
            resolve(target)
    for target in getattr(entry, "evidence", ()):
        assert (ROOT / f"tasks/pages/templates/attacks/{resolve(target).name}.html.j2").is_file()
    module = entry.trained_by if isinstance(entry, Task) else entry.module
    assert callable(import_module(f"tasks.stages.{module}").main)


@cache
def installed() -> set[str]:
    """Names of all packages, and of our modules."""
    return {*packages_distributions(), *(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in OURS)}


@pytest.mark.parametrize("module", UNNAMED)
def test_no_plug_in_is_loaded_that_nobody_named(module: str) -> None:
    loaded = python(f"import sys, {module}; print(*sys.modules)")
    for prefix in UNNAMED[module]:
        assert any(name.startswith(prefix) for name in installed()), f"{prefix}: no module is called so"
        assert [name for name in loaded.split() if name.startswith(prefix) and name != module] == []
