"""A fingerprint moves when, and only when, code changes that decides an output."""

import ast
import json
import re
import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import grimp
import pytest

from tasks.config.params import Experiment, Params, load
from tasks.core.errors import ConfigurationError
from tasks.core.fingerprints import PACKAGES, Module, Plugin, Source
from tasks.pipeline import keys, papers, table

ROOT = Path(__file__).resolve().parents[2]
BPR = Plugin("tasks.models", "MODELS", "bpr")
TRAIN = "tasks.stages.train"


@pytest.fixture(scope="module")
def params() -> Params:
    return load(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def source() -> Source:
    """The tree, read as far as any stage asks for."""
    return Source(ROOT)


@pytest.fixture(scope="module")
def before(params: Params, source: Source) -> dict[str, dict[str, str]]:
    return keys.fingerprints(params, source)


@pytest.fixture(scope="module")
def closures(params: Params) -> dict[tuple[str, str], frozenset[str]]:
    """(stage, instance) -> all modules that it runs, by grimp: an import of x.y runs x, too."""
    graph = grimp.build_graph("tasks", cache_dir=None, exclude_type_checking_imports=True)
    source = Source(ROOT)

    @cache
    def below(module: str) -> frozenset[str]:
        closure, todo = {module}, [module]
        while todo:
            name = todo.pop()
            if name not in graph.modules:  # YAML
                continue
            ran = graph.find_modules_directly_imported_by(name) if source.module(name).digest else set()
            ran |= {".".join(part.split(".")[:end]) for part in {name, *ran} for end in range(1, part.count(".") + 1)}
            todo += ran - closure
            closure |= ran
        return frozenset(closure)

    closures = {}
    for stages in table.dvc_files(params).values():
        for stage in stages:
            for key in stage.items:
                entries = [source.target(plugin).partition(":")[0] for plugin in stage.plugins(key)]
                closures[stage.name, key] = frozenset().union(*map(below, [f"tasks.stages.{stage.module}", *entries]))
    return closures


def copied(folder: Path) -> Path:
    """The source tree, to be changed."""
    shutil.copytree(ROOT / "tasks", folder / "tasks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", folder)
    return folder


def reread(root: Path, source: Source, *modules: str) -> Source:
    """The copy of the tree, of which only these modules have changed: the others are as they were."""
    copy = Source(root)
    copy._modules |= {name: module for name, module in source._modules.items() if name not in modules}
    return copy


def moved(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> set[tuple[str, str]]:
    """(stage, instance) of the fingerprints that differ."""
    assert {name: set(keys) for name, keys in before.items()} == {name: set(keys) for name, keys in after.items()}
    return {(name, key) for name, keys in before.items() for key in keys if keys[key] != after[name][key]}


def test_the_committed_files_are_those_of_the_code(before: dict[str, dict[str, str]], params: Params) -> None:
    committed: dict[str, dict[str, str]] = {}
    for file in table.dvc_files(params):
        for stage, digests in json.loads((ROOT / table.code_file(file)).read_text(encoding="utf-8")).items():
            committed.setdefault(stage, {}).update(digests)
    assert committed == before


def test_a_constant_moves_exactly_the_stages_whose_closure_holds_its_module(
    source: Source, closures: dict[tuple[str, str], frozenset[str]], params: Params
) -> None:
    """One module after the other, every fourth; which ones a stage runs, grimp says."""
    instances: dict[tuple[str, frozenset[Plugin]], set[tuple[str, str]]] = {}
    for stage in (stage for stages in table.dvc_files(params).values() for stage in stages):
        for key in stage.items:
            runs = f"tasks.stages.{stage.module}", frozenset(stage.plugins(key))
            instances.setdefault(runs, set()).add((stage.name, key))
    digests = {runs: source.digest(*runs) for runs in instances}
    wrong = []
    for path in sorted((ROOT / "tasks").rglob("*.py"))[::4]:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        counts = bool(source.module(module).digest)
        expected = {which for which, modules in closures.items() if counts and module in modules}
        changed = Changed(source, module)
        moves = (which for runs, which in instances.items() if changed.digest(*runs) != digests[runs])
        actual = set().union(*moves)
        if actual != expected:
            wrong.append((module, sorted(actual ^ expected)[:3]))
    assert wrong == []


class Changed(Source):
    """The tree with one more constant in a module: everything else is read once."""

    def __init__(self, source: Source, module: str) -> None:
        super().__init__(ROOT)
        self._shared, self._changed = source, module

    def _reach(self, roots: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
        return self._shared._reach(roots)

    def module(self, name: str) -> Module:
        module = self._shared.module(name)
        changes = name == self._changed and module.digest
        return replace(module, digest=f"{module.digest} and a constant") if changes else module


MOVES = {
    "tasks.privacy.keyed": "tasks.evaluation.coins", "tasks.models.ranking.bpr": "tasks.graph.pairs",
    "tasks.privacy.mechanisms": "tasks.laws", "tasks.pages": "tasks.site",
}  # fmt: skip
"""Of a module, of a plug-in, of a package, and of one with templates."""


def renamed(text: str) -> str:
    return re.sub("|".join(rf"\b{re.escape(old)}\b" for old in MOVES), lambda match: MOVES[match[0]], text)


def test_a_move_makes_nothing_stale(
    before: dict[str, dict[str, str]], source: Source, params: Params, tmp_path: Path
) -> None:
    class Importers(ast.NodeTransformer):
        def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.ImportFrom]:
            parts = [(part, MOVES.get(f"{node.module}.{part.name}", "").rpartition(".")) for part in node.names]
            return [
                ast.ImportFrom(above, [ast.alias(name, part.name)], 0) if above
                else ast.ImportFrom(node.module, [part], node.level) for part, (above, _, name) in parts
            ]  # fmt: skip

    class Moved(Source):
        def target(self, plugin: Plugin) -> str:
            """Where the table of tasks, which is not that of the copy, says of an entry that it is."""
            return renamed(super().target(plugin))

    root, changed = copied(tmp_path), set[str]()
    last_names = re.compile("|".join(old.rpartition(".")[2] for old in MOVES))
    for path in (root / "tasks").rglob("*.py"):
        if last_names.search(text := path.read_text(encoding="utf-8")):
            path.write_text(renamed(ast.unparse(Importers().visit(ast.parse(text)))), encoding="utf-8")
            changed.add(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
    for path in (root / "tasks/papers").glob("*/paper.yaml"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
        changed.add(".".join(path.relative_to(root).with_suffix("").parts))
    for old, new in MOVES.items():
        before_move, after = (root.joinpath(*dotted.split(".")) for dotted in (old, new))
        suffix = "" if before_move.is_dir() else ".py"
        before_move.with_suffix(suffix).rename(after.with_suffix(suffix))
    tree = Moved(root)
    tree._modules |= {name: module for name, module in source._modules.items() if name not in changed}
    assert moved(before, keys.fingerprints(params, tree)) == set()


def test_of_a_registry_only_the_named_entry_counts(tmp_path: Path) -> None:
    root = copied(tmp_path)
    before = {name: Source(root).digest(TRAIN, [Plugin("tasks.models", "MODELS", name)]) for name in ("bpr", "ease")}
    registry = root / "tasks/models/__init__.py"
    text = registry.read_text()
    registry.write_text(text.replace("MODELS = {", 'MODELS = {\n    "new": "tasks.models.ranking.ease:EASE",'))
    assert Source(root).digest(TRAIN, [BPR]) == before["bpr"]
    registry.write_text(text.replace("tasks.models.ranking.bpr:BPR", "tasks.models.ranking.ease:EASE"))
    assert Source(root).digest(TRAIN, [BPR]) != before["bpr"]
    assert Source(root).digest(TRAIN, [Plugin("tasks.models", "MODELS", "ease")]) == before["ease"]
    with pytest.raises(ConfigurationError, match=r"tasks\.models\.MODELS: unknown 'nope'; known: "):
        Source(root).digest(TRAIN, [Plugin("tasks.models", "MODELS", "nope")])


def test_templates_and_pinned_packages_count_where_they_are_used(
    before: dict[str, dict[str, str]], source: Source, params: Params, tmp_path: Path
) -> None:
    root = copied(tmp_path)
    style = root / "tasks/pages/templates/style.css"
    style.write_text(style.read_text() + "\n")
    actual = moved(before, keys.fingerprints(params, reread(root, source, "tasks.pages.page")))
    assert actual == {("report", suite) for suite in params.suites}
    style.write_text((ROOT / "tasks/pages/templates/style.css").read_text())
    pins = root / "requirements.lock"
    pins.write_text(re.sub(r"(?m)^dp-accounting==.*$", "dp-accounting==99.0", pins.read_text()))
    actual = moved(before, keys.fingerprints(params, reread(root, source)))
    assert ("train", "gerai-dpae") in actual
    assert ("train", "gerai-bpr") not in actual


@pytest.mark.parametrize(
    ("file", "old", "new", "kinds"),
    [
        ("paper.yaml", "title: Optimal clipping bound", "title: Other words", {"report"}),
        ("paper.yaml", "VAE ranks above DP-VAE at every", "In other words at every", {"report"}),
        ("paper.yaml", "headline_k: 100", "headline_k: 10", {"collect", "report"}),
        ("preparation.py", 'SYSTEM = "dpvae"', 'SYSTEM = "vae"', {"report"}),
    ],
)
def test_of_a_paper_its_numbers_count_where_they_are_read_and_its_words_on_pages_alone(
    before: dict[str, dict[str, str]], source: Source, params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    file: str, old: str, new: str, kinds: set[str],
) -> None:  # fmt: skip
    root = copied(tmp_path)
    path = root / "tasks/papers/dpvae" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr(papers, "ROOT", root)
    papers.numbers.cache_clear()
    actual = moved(before, keys.fingerprints(params, reread(root, source, f"tasks.papers.dpvae.{path.stem}")))
    papers.numbers.cache_clear()
    suites = {name for name, suite in params.suites.items() if suite.paper == "dpvae"}
    assert actual == {(kind, suite) for kind in kinds for suite in suites}


WRITTEN = {
    "tasks.quality": "rules, which the pages of a check state",
    "tasks.datasets": "what sources say of themselves, which source.json and replicas have; classes of the data",
    "tasks.evaluation.pairs": "names of what is drawn",
    "tasks.attacks.shadows": "names of what is drawn",
    "tasks.results": "which only the suite's own numbers and pages are made with",
}
"""Modules whose words are in outputs -> which."""


def test_words_move_no_fingerprint_but_those_of_pages(
    source: Source, closures: dict[tuple[str, str], frozenset[str]]
) -> None:
    wrong = []
    for name in sorted(frozenset().union(*(ran for (stage, _), ran in closures.items() if stage != "report"))):
        path = source.path(name)
        if name.startswith(tuple(WRITTEN)) or path is None or path.suffix != ".py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and len(re.findall(r"(?<![\w./-])[a-z]{2,}(?![\w./-])", str(node.value))) > 2
            ):
                node.value = "Other words."
            if isinstance(node, ast.ClassDef) and node.name.endswith(
                "Error"
            ):  # what is returned of them does not count
                assert all(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases), node.name
        if source._read(name, path, tree).digest != source.module(name).digest:
            wrong.append(name)
    assert wrong == []


def test_every_package_decides_numbers_or_bytes_or_is_known_not_to() -> None:
    """randomgen draws noise that is released, on which no result rests; mpmath decides roundings exactly."""
    silent = {"filelock", "httpx", "markdown_it", "markupsafe", "mpmath", "pdoc", "pydantic", "randomgen", "rich"}
    silent |= {"tenacity", "threadpoolctl", "typing_extensions", "yaml"}
    graph = grimp.build_graph("tasks", include_external_packages=True, cache_dir=None)
    packages = {name for name in graph.modules if graph.is_module_squashed(name)} - {*sys.stdlib_module_names}
    assert packages == {*PACKAGES} | silent


def test_broken_code_and_modules_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    root = copied(tmp_path)
    (root / "tasks/models/ranking/bpr.py").write_text("def f(:\n")
    with pytest.raises(ConfigurationError, match=r"^\S*bpr\.py:1: "):
        Source(root).digest(TRAIN, [BPR])
    with pytest.raises(ConfigurationError, match=r"tasks\.nope: no such module"):
        Source(root).digest("tasks.nope")


def test_of_the_parameters_types_fields_that_hold_what_a_file_says_do_not_count(
    before: dict[str, dict[str, str]], source: Source, params: Params, tmp_path: Path
) -> None:
    root = copied(tmp_path)
    path = root / "tasks/config/params.py"
    text = path.read_text()

    def changed_keys(old: str, new: str) -> set[tuple[str, str]]:
        assert old in text
        path.write_text(text.replace(old, new))
        return moved(before, keys.fingerprints(params, reread(root, source, "tasks.config.params")))

    assert changed_keys("class About(Strict):", "class New(Strict):\n    k: int\n\n\nclass About(Strict):") == set()
    assert changed_keys("class About(Strict):", "class About(Strict):\n    k: int") == set()
    assert changed_keys("class About(Strict):", "class About(Strict):\n    k: int | None = None") == set()
    trained = {("train", name) for name in params.experiments}
    assert changed_keys("self.config | override", "override | self.config") >= trained
    assert changed_keys("class Evaluation(Strict):", "class Evaluation(BaseModel):") >= trained
    assert changed_keys("class About(Strict):", "class About(Strict):\n    k: int = 1") >= trained
    converted = changed_keys("negatives: Annotated[int, ", "negatives: Annotated[float, ")
    assert converted >= trained, "100 becomes 100.0, and with it the names of metrics"
    halved = "class About(Strict):\n    k: Annotated[float, AfterValidator(lambda value: value / 2)]"
    assert changed_keys("class About(Strict):", halved) >= trained


def test_fields_of_the_parameters_types_have_no_defaults_that_decide() -> None:
    """None does not count, so what decides must be in params.yaml; False counts: what was before there was a key."""
    marked = [path for path in (ROOT / "tasks").rglob("*.py") if "\nHOLDS_PARAMETERS = True\n" in path.read_text()]
    assert marked
    for path in marked:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                for field in node.body:
                    if isinstance(field, ast.AnnAssign) and field.value is not None:
                        text = ast.unparse(field.value)
                        assert re.search(r"default_factory|Field\(discriminator|^None$|^False$", text), (
                            f"{path}: {text}"
                        )


def test_an_attacker_makes_the_attacks_of_the_suites_that_name_it_stale(
    before: dict[str, dict[str, str]], source: Source, params: Params, tmp_path: Path
) -> None:
    root = copied(tmp_path)
    registry = root / "tasks/attacks/__init__.py"
    entry = 'ATTACKERS = {\n    "toy": "tasks.attacks.toy:toy",'
    registry.write_text(registry.read_text().replace("ATTACKERS = {", entry))
    (root / "tasks/attacks/toy.py").write_text("def toy(): ...\n")
    tree = reread(root, source, "tasks.attacks")
    assert moved(before, keys.fingerprints(params, tree)) == set()
    demo = params.suites["demo"]
    with_toy = demo.attack.model_copy(update={"attackers": [*demo.attack.attackers, "toy"]})
    suites = params.suites | {"demo": demo.model_copy(update={"attack": with_toy})}
    actual = moved(before, keys.fingerprints(params.model_copy(update={"suites": suites}), tree))
    assert actual == {("attack", name) for name in demo.experiments}


def test_order_counts_where_outputs_have_it_and_a_settings_name_where_it_is_written(
    before: dict[str, dict[str, str]], source: Source, params: Params
) -> None:
    """DVC compares tables without their order, and takes 100 for 100.0, which are two names of a setting."""

    def fingerprints(**experiments: Experiment) -> dict[str, dict[str, str]]:
        demo = params.suites["demo"].model_copy(update={"experiments": experiments})
        return keys.fingerprints(params.model_copy(update={"suites": params.suites | {"demo": demo}}), source)

    own = params.suites["demo"].experiments
    of_all = {("audit", "demo"), ("check-metrics", "demo"), ("collect", "demo")}
    assert moved(before, fingerprints(**own)) == set()
    assert moved(before, fingerprints(**dict(reversed(own.items())))) == of_all
    of_ease = {(kind, "demo-ease") for kind in ("train", "check-recommendations", "attack")}
    turned = own["demo-ease"].model_copy(update={"seeds": [2, 1, 0]})
    assert moved(before, fingerprints(**own | {"demo-ease": turned})) == of_all | of_ease
    integer, float_ = (
        own["demo-ease"].model_copy(update={"sweep": [{"regularization": value}]}) for value in (100, 100.0)
    )
    first, second = (fingerprints(**own | {"demo-ease": experiment}) for experiment in (integer, float_))
    assert moved(first, second) == of_all | of_ease


def test_what_a_system_is_called_counts_where_it_is_written_down(
    before: dict[str, dict[str, str]], source: Source, params: Params
) -> None:
    """Where an experiment is a parameter, DVC compares it; an attack on attributes has none."""
    demo = params.suites["demo"]
    other = demo.experiments["demo-gerai-nf"].model_copy(update={"system": "gcn-nf"})
    renamed = demo.model_copy(update={"experiments": demo.experiments | {"demo-gerai-nf": other}})
    actual = keys.fingerprints(params.model_copy(update={"suites": params.suites | {"demo": renamed}}), source)
    assert moved(before, actual) == {("attack", "demo-gerai-nf")}
