"""What dvc.yaml, the root's and every suite's, says a stage depends on is what the stage imports: a forgotten module
means results that are silently out of date, a needless one means work that is done again for nothing.

Left out are modules that decide no number: the parameters' types, which hold no defaults (the parameters themselves are
listed under `params`), and the `__init__.py` of packages, which are empty or registries of names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

from tasks.attacks import ATTACKERS
from tasks.datasets import FORMATS, SOURCES
from tasks.models import MODELS
from tasks.protocols import PROTOCOLS
from tasks.stages import targets
from tasks.stages.attack_params import AttributeAttack, EdgeAttack, EmbeddingAttack, ReconstructionAttack
from tasks.stages.params import Params, load

ROOT = Path(__file__).resolve().parents[1]
EXEMPT = {
    f"tasks.stages.{name}"
    for name in ("attack_params", "fields", "network_params", "network_references", "params", "references")
}


@dataclass(frozen=True)
class Stage:
    """A stage of a dvc.yaml: `train@demo-bpr` runs `python -m tasks.stages.train demo-bpr`.

    suite: in whose folder it is described; empty for the root's. params: (file, key).
    """

    address: str
    suite: str
    module: str
    name: str
    deps: tuple[str, ...]
    params: tuple[tuple[str, str], ...]

    def covers(self, path: str) -> bool:
        """Whether a file is among the deps, by itself or with its folder."""
        return any(path == dep or path.startswith(f"{dep}/") for dep in self.deps)


@pytest.fixture(scope="module")
def graph() -> Iterator[Any]:
    """DVC's graph of all stages, from each to those that it needs."""
    from dvc.repo import Repo

    with Repo(str(ROOT)) as repo, pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield repo.index.graph


@pytest.fixture(scope="module")
def stages(graph: Any) -> list[Stage]:
    found = []
    for stage in graph:
        command = re.fullmatch(r"python -m (tasks\.stages\.\w+) (\S+)", stage.cmd)
        assert command, f"{stage.addressing}: {stage.cmd}"
        paths = [dep for dep in stage.deps if not hasattr(dep, "params")]
        keys = [(relative(dep), key) for dep in stage.deps if hasattr(dep, "params") for key in dep.params]
        deps = tuple(relative(dep) for dep in paths)
        folder, _, address = stage.addressing.rpartition(":")
        suite = folder.removeprefix("suites/").removesuffix("/dvc.yaml")
        found.append(Stage(address, suite, command[1], command[2], deps, tuple(keys)))
    return found


def relative(dep: Any) -> str:
    """Where a dependency of DVC's lies in the project."""
    return Path(dep.fs_path).relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("tasks", cache_dir=None, exclude_type_checking_imports=True)


@pytest.fixture(scope="module")
def params() -> Params:
    return load(ROOT / "params.yaml")


def loaded_by_name(stage: Stage, params: Params) -> set[str]:
    """Modules that a stage loads through a registry, because params.yaml names them."""
    kind, name = stage.module.rpartition(".")[2], stage.name
    if kind == "download":
        return {SOURCES[params.datasets[name].source]}
    if kind == "convert":
        return {FORMATS[params.datasets[name].format]}
    if kind == "preprocess":
        return {PROTOCOLS[params.processed[name].protocol]}
    if kind in ("train", "train_networks"):
        return {MODELS[params.experiments[name].model].partition(":")[0]}
    if kind == "embed_networks":
        return {MODELS[params.embeddings[name].model].partition(":")[0]}
    if kind == "attack":
        attack = targets.attribute_attack(params.experiments[name].suite, params)
        return {ATTACKERS[attacker].partition(":")[0] for attacker in attack.attackers}
    if kind == "attack_edges":
        attack = params.suites[name].attack
        assert isinstance(attack, EdgeAttack)
        named = [*attack.systems, attack.control]
        return {MODELS[params.experiments[one].model].partition(":")[0] for one in named}
    if kind == "audit_training":
        audit = params.suites[name].training_audit
        assert audit is not None
        return {MODELS[params.experiments[one].model].partition(":")[0] for one in audit.experiments}
    return set()


@cache
def upstream(imports: grimp.ImportGraph, module: str) -> frozenset[str]:
    """What a module imports, directly or not; hundreds of stages ask for the same few."""
    return frozenset(imports.find_upstream_modules(module))


def registered(kind: str, imports: grimp.ImportGraph) -> set[str]:
    """Files of everything that params.yaml could name to a kind of stage, whether or not it does."""
    modules = {"download": SOURCES, "convert": FORMATS, "preprocess": PROTOCOLS}.get(kind, {}).values()
    found = {module for entry in modules for module in upstream(imports, entry)}
    return {f"{module.replace('.', '/')}.py" for module in found}


def runs(stage: Stage, imports: grimp.ImportGraph, params: Params) -> dict[str, str]:
    """Modules that a stage runs, directly or not, and their files."""
    entries = {stage.module} | loaded_by_name(stage, params)
    modules = entries.union(*(upstream(imports, entry) for entry in entries))
    files = {module: f"{module.replace('.', '/')}.py" for module in modules - EXEMPT}
    return {module: file for module, file in files.items() if (ROOT / file).is_file()}  # the rest are __init__.py


def data_files() -> dict[str, str]:
    """Files under tasks/ that are not code (templates, styles), and the package that each belongs to."""
    found = {}
    for path in (ROOT / "tasks").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".py":
            package = next(folder for folder in path.parents if (folder / "__init__.py").is_file())
            found[path.relative_to(ROOT).as_posix()] = package.relative_to(ROOT).as_posix().replace("/", ".")
    return found


def test_every_module_that_a_stage_runs_is_among_its_deps(
    stages: list[Stage], imports: grimp.ImportGraph, params: Params
) -> None:
    missing = {
        stage.address: forgotten
        for stage in stages
        if (forgotten := [file for file in runs(stage, imports, params).values() if not stage.covers(file)])
    }
    assert not missing


def test_templates_of_a_package_are_deps_of_the_stages_that_run_it(
    stages: list[Stage], imports: grimp.ImportGraph, params: Params
) -> None:
    files = data_files()
    assert files
    for stage in stages:
        packages = {module.rpartition(".")[0] for module in runs(stage, imports, params)}
        forgotten = [file for file, package in files.items() if package in packages and not stage.covers(file)]
        assert not forgotten, stage.address


def test_no_stage_depends_on_code_that_none_of_its_kind_runs(
    stages: list[Stage], imports: grimp.ImportGraph, params: Params
) -> None:
    listed, used = defaultdict(set), defaultdict(set)
    for stage in stages:
        kind = stage.address.partition("@")[0]
        files = set(runs(stage, imports, params).values())
        code = {dep for dep in stage.deps if dep.startswith("tasks/")}
        files |= registered(kind, imports)
        listed[kind] |= code
        used[kind] |= {dep for dep in code if any(file == dep or file.startswith(f"{dep}/") for file in files)}
    assert {kind: listed[kind] - used[kind] for kind in listed if listed[kind] - used[kind]} == {}


def test_modules_are_loaded_by_name_only_where_this_test_looks() -> None:
    dynamic = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tasks").rglob("*.py")
        if re.search(r"import_module\(|__import__\(|\bexec\(", path.read_text(encoding="utf-8"))
    }
    assert dynamic == {
        "tasks/attacks/attribute.py",
        "tasks/models/__init__.py",
        "tasks/stages/convert.py",
        "tasks/stages/data.py",
        "tasks/stages/download.py",
        "tasks/stages/params.py",
        "tasks/stages/preprocess.py",
    }


def test_what_is_left_out_holds_no_number(imports: grimp.ImportGraph) -> None:
    for package in (module for module in imports.modules if (ROOT / module.replace(".", "/")).is_dir()):
        text = (ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
        assert not re.search(r"=\s*-?\d", text), package


def test_a_stage_depends_on_its_own_parameters_and_on_no_others(stages: list[Stage]) -> None:
    """An instance names its own entry of a table; whole tables are for the stages that look at a suite."""
    tables = {"datasets", "processed", "perturbed", "embedded", "embeddings", "aligned", "experiments", "suites"}
    for stage in stages:
        own = stage.address.partition("@")[2]
        kinds = ("attack-edges@", "audit@", "audit-training@", "check-metrics@", "report@")
        looks_at_a_suite = stage.address.startswith(kinds)
        suite = own if looks_at_a_suite else stage.suite
        for file, key in stage.params:
            assert file in ("params.yaml", f"suites/{suite}/params.yaml"), f"{stage.address}: {file}"
            table, _, entry = key.partition(".")
            if table in tables and entry:
                of = suite if table == "suites" else own
                assert entry == of or entry.startswith(f"{of}."), f"{stage.address}: {key}"
            elif table in tables:
                assert looks_at_a_suite, f"{stage.address}: {key}"


def test_a_suites_folder_has_the_stages_of_its_experiments(stages: list[Stage], params: Params) -> None:
    """Those of an attack only where there is one; every run lies in the suite's own folder."""
    for name, suite in params.suites.items():
        found = {stage.address for stage in stages if stage.suite == name}
        expected = {f"{kind}@{one}" for kind in ("train", "check-recommendations") for one in suite.experiments}
        if isinstance(suite.attack, AttributeAttack):
            expected |= {f"targets@{name}"} | {f"attack@{one}" for one in suite.experiments}
        if isinstance(suite.attack, EdgeAttack):
            expected |= {f"attack-edges@{name}"}
        if isinstance(suite.attack, ReconstructionAttack):
            expected |= {f"attack-ratings@{one}" for one in suite.experiments}
        if isinstance(suite.attack, EmbeddingAttack):
            expected |= {f"attack-embeddings@{one}" for one in suite.experiments}
        expected |= {f"{kind}@{one}" for kind in ("embed-networks", "check-embeddings") for one in suite.embeddings}
        expected |= {f"{kind}@{one}" for kind in ("align", "check-aligned") for one in suite.aligned}
        if suite.training_audit is not None:
            expected |= {f"audit-training@{name}"}
        assert found == expected
        assert len(found) <= 100  # what of a lock file one can still look at
    addresses = [stage.address for stage in stages]
    assert len(set(addresses)) == len(addresses)  # so that a stage can be shown without its folder


def test_a_report_waits_for_every_stage_of_its_suite(graph: Any, params: Params) -> None:
    """Also for the checks of what was released and is not attacked."""
    for suite in params.suites:
        own = {stage for stage in graph if stage.addressing.startswith(f"suites/{suite}/dvc.yaml:")}
        needed: set[Any] = set()
        todo = [stage for stage in graph if stage.addressing == f"report@{suite}"]
        while todo:
            todo = [one for stage in todo for one in graph.successors(stage) if one not in needed]
            needed.update(todo)
        assert own
        assert own <= needed


def test_the_demo_needs_no_other_data_set(stages: list[Stage]) -> None:
    from flows import plan

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        steps = plan.read("report@demo").steps
    assert not [step.name for step in steps if "ml-100k" in step.name or "gerai@" in step.name]
    assert len(steps) < len(stages)
