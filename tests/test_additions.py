"""Toys of all that can be added take the files that CONTRIBUTING.md lists, and then run to a report.

Each is added to a copy of the source tree: the modules of tests/additions/ and the lines below. What each touches is
compared with its row of "What there is to write". Then the pipeline runs in the copy, from download to report, and so
do the tests that hold every entry of a registry to its contract.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from tasks.config.params import load
from tasks.pipeline import keys
from tasks.results.load import COMPARISON
from tasks.results.paper import load as read_paper
from tests.parameters import ROOT

pytestmark = pytest.mark.slow

SOURCES = ROOT / "tests" / "additions"
TOY = read_paper(SOURCES / "tasks/papers/toy/paper.yaml")
TREE = ("data/reference", "suites", "tasks", "tests", "params.yaml", "pyproject.toml", "requirements.lock")
"""What of the project is copied: all that an addition may touch, and what the pipeline reads."""
READ_TERMS = ("report", "attack-membership", "collect")
"""Stages that read which units bound which, or the English of terms: an addition moves them."""
WRITTEN = {"dvc.yaml", "code.json"}
"""What the project writes by itself."""


@dataclass(frozen=True)
class Addition:
    """What someone writes who adds something.

    files: files, or folders of files, below tests/additions/.
    lines: file -> (how a line begins, what is put below it).
    """

    files: tuple[str, ...]
    lines: dict[str, list[tuple[str, str]]]


def entry(table: str, value: str, name: str = "toy") -> tuple[str, str]:
    """A line of a registry."""
    return f"{table} = {{", f'    "{name}": "{value}",'


TOY_FILES = {
    "ratings.csv": b"user,item,rating\n0,1,5.0\n0,2,3.0\n1,2,4.0\n",
    "users.csv": b"user,colour\n0,blue\n1,red\n",
}
ADDITIONS = {
    "a paper": Addition(
        ("tasks/papers/toy",),
        {
            "tasks/papers/__init__.py": [
                entry("PROTOCOLS", "tasks.papers.toy.protocol"),
                entry("PAPERS", "tasks.papers.toy.paper"),
            ],
            "data/reference/paper_tables.csv": [
                ("paper,", f"toy,{table},toy,{method},,{metric}@{k},{value},")
                for table, metric in (("table2", "hit"), ("table3", "f1_colour"))
                for method, value in (("ToyRec", 0.5), ("MostPopular", 0.25))
                for k in (5, 10)
            ],
        },
    ),
    "a data set": Addition(
        ("tasks/datasets/toy.py",),
        {
            "tasks/datasets/__init__.py": [entry("FORMATS", "tasks.datasets.toy")],
            "params.yaml": [
                ("datasets:", "  toy: {source: toy, obtain: {}, format: toy, read: {}}"),
                ("processed:", "  toy: {dataset: toy, protocol: toy, options: {split_seed: 1}}"),
            ],
            "tests/fuzz/samples.py": [("    of_formats = {", f'        "toy": ({TOY_FILES}, NoOptions()),')],
        },
    ),
    "a task of suites": Addition(
        ("tasks/stages/evaluators/toy.py", "tasks/stages/checks/toy.py"),
        {
            "tasks/config/tasks.py": [
                (
                    "TASKS = {",
                    '    "toy": Task('
                    'evaluator="tasks.stages.evaluators.toy:Toy", checks="tasks.stages.checks.toy:TOY", '
                    'checked_against=("/interactions.parquet", "/schema.json"), validation="hit@{k}", '
                    'bands={"full/*": 0.1, "sampled-*": 0.1}, keys=frozenset(OPTIONAL)),',
                )
            ]
        },
    ),
    "a suite": Addition(("suites/toy",), {}),
    "a unit of privacy, a mechanism, a condition or a known gap that no ledger had": Addition(
        (),
        {
            "tasks/privacy/terms.py": [
                ("Unit = Literal[", '    "toy-cell",'),
                ("Mechanism = Literal[", '    "toy-cells",'),
            ],
            "tasks/privacy/units.py": [
                ("STEPS: ", '    "toy-cell": {"toy-cell": 1},'),
                ("LEVELS: ", '    "toy-cell": "interaction",'),
            ],
            "tasks/pages/templates/terms.yaml": [
                ("units:", "  toy-cell: a cell"),
                ("neighbouring:", "  toy-cell add-or-remove: one cell added or removed"),
                ("mechanisms:", "  toy-cells: Laplace noise on cells"),
            ],
        },
    ),
    "a model": Addition(
        ("tasks/models/ranking/toy.py", "tasks/models/ranking/noisy_toy.py"),
        {
            "tasks/models/__init__.py": [
                entry("MODELS", "tasks.models.ranking.toy:Toy"),
                entry("MODELS", "tasks.models.ranking.noisy_toy:NoisyToy", "noisy-toy"),
            ],
            "suites/toy/params.yaml": [
                ("experiments:", "  toy-toy: {model: toy}"),
                ("experiments:", "  toy-noisy-toy: {model: noisy-toy, config: {epsilon: 2.0}}"),
            ],
            "tests/models/contract.py": [
                ("LISTS = {", '    "toy": {},'),
                ("LISTS = {", '    "noisy-toy": {"epsilon": 1000.0},'),
            ],
        },
    ),
    "an audit of a private model": Addition(
        ("tasks/audits/toy.py",),
        {
            "tasks/audits/__init__.py": [entry("AUDITS: dict[str, str]", "tasks.audits.toy:cells", "noisy-toy")],
            "tasks/audits/lines.py": [("AUDITED_LINES: ", '    "noisy-toy": ("toy-cells", ""),')],
            "tasks/pages/templates/terms.yaml": [
                ("worst_cases:", "  noisy-toy: the only interaction that there can be")
            ],
        },
    ),
    "an attacker": Addition(
        ("tasks/attacks/toy.py",),
        {
            "tasks/attacks/__init__.py": [entry("ATTACKERS", "tasks.attacks.toy:nearest_mean")],
            "suites/toy/attack.yaml": [("  attackers:", "    - toy")],
        },
    ),
    "a kind of attack": Addition(
        ("tasks/stages/attack_toy.py", "tasks/pages/templates/attacks/toy.html.j2"),
        {
            "tasks/config/attacks.py": [
                ("HOLDS_PARAMETERS", 'class ToyAttack(Strict):\n    kind: Literal["toy"]\n    systems: list[Name]')
            ],
            "tasks/config/tasks.py": [
                (
                    "ATTACKS = {",
                    '    "toy": AttackKind('
                    '"attack_toy", "toys", names=("systems",), reads=("{checked}",), writes="toy"),',
                ),
                ("    attacks.AttributeAttack", "    | attacks.ToyAttack"),
            ],
        },
    ),
}
"""Row of "What there is to write" -> what it takes, in an order in which nothing is named before it is there."""
RUN = """
import runpy, sys

from tasks.config.params import load
from tasks.pipeline import dvc_files, table
from tasks.stages import audit, code, report

params, only = load(), sys.argv[1:]
dvc_files.write(params)
code.main()
stages = table.dvc_files(params)
for file in (table.DATA, table.own_file("toy"), table.ROOT):
    for stage in stages[file]:
        for key in stage.items:
            if (key == "toy" or file == table.own_file("toy")) and stage.name in (only or [stage.name]):
                argument = stage.argument.replace("${key}", key)
                if stage.module == "audit":
                    audit.MOST = 5_000  # samples: by default audits take as many as half a minute allows
                    audit.main(argument)
                    continue
                sys.argv = [f"{stage.module}.py", argument]
                runpy.run_module(f"tasks.stages.{stage.module}", run_name="__main__")
results = report.results_of("toy")
results.__dict__["suite"] = results.suite.model_copy(update={"synthetic": False})
for name, table in report.judged(results).items():
    table.write_csv(f"data/as-if-real-{name}.csv")
"""
"""Every stage of the suite, or those that are named, and what is judged as if the data were real: synthetic ones are
compared with nothing."""
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
CONTRACTS = """
import sys, pytest
files = "models/test_contract", "attacks/test_attribute", "audits/test_audits", "stages/test_data"
files = *files, "results/test_papers", "fuzz/test_fuzz"
which = "(toy or registered_model or test_papers.py or every_source or every_format) and not evidence"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", which, *(f"tests/{file}.py" for file in files)]))
"""
"""The tests that hold every entry of a registry to its promises, of the toys."""


def contents(tree: Path) -> dict[str, bytes]:
    """Path -> content of all files but those that Python writes."""
    files = (path for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in files}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """Files that are new, gone or different."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def add(addition: Addition, tree: Path) -> set[str]:
    """Write it into the tree; the files that it touched."""
    before = contents(tree)
    for name in addition.files:
        copy = shutil.copytree if (SOURCES / name).is_dir() else shutil.copy
        copy(SOURCES / name, tree / name)
    for name, lines in addition.lines.items():
        text = (tree / name).read_text(encoding="utf-8")
        for start, new in lines:
            above = re.search(rf"^{re.escape(start)}.*\n", text, re.MULTILINE)
            assert above, f"{name}: no line begins with {start!r}"
            text = f"{text[: above.end()]}{new}\n{text[above.end() :]}"
        (tree / name).write_text(text, encoding="utf-8")
    return changed(before, contents(tree))


def listed() -> dict[str, list[str]]:
    """Row of "What there is to write" -> its files; `<…>` stands for a name, a folder for any file in it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("\n## What there is to write\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {what: re.findall(r"`([\w<>./-]+[./][\w<>./-]*)`", files) for what, files in rows[2:]}


def fits(path: str, pattern: str) -> bool:
    """Whether a row's file is this one; a name alone is of a file in a folder that the row has, too."""
    wanted = re.sub("<[a-z]+>", "toy", pattern)
    return path.startswith(wanted) if wanted.endswith("/") else path == wanted or Path(path).name == wanted


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("project")
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "dvc.lock"))
        else:
            shutil.copy(ROOT / name, place)
    return place


@pytest.fixture(scope="module")
def touched(tree: Path) -> dict[str, set[str]]:
    """What each addition touches in the copy, which has them all then."""
    return {what: add(addition, tree) for what, addition in ADDITIONS.items()}


def execute(script: str, tree: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("what", ADDITIONS)
def test_an_addition_touches_the_files_that_are_listed_and_no_others(what: str, touched: dict[str, set[str]]) -> None:
    patterns = listed()[what]
    assert [path for path in touched[what] if not any(fits(path, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(fits(path, pattern) for path in touched[what])] == []


def test_all_of_it_runs_from_download_to_report(tree: Path, touched: dict[str, set[str]]) -> None:
    """One test, so that the pipeline runs once however many processes share the tests."""
    assert touched
    before = contents(tree)
    execute(RUN, tree)
    after = {
        path: content for path, content in contents(tree).items() if path in before or not path.startswith("data/")
    }
    assert {path for path in changed(before, after) if Path(path).name not in WRITTEN} == set()
    no_other_stage_moved(tree)
    measured = pl.read_parquet(tree / "data/results/toy/metrics.parquet")
    assert {"full/hit", "attribute/colour/toy/f1"} <= set(measured.filter(experiment="toy-toy", k=5)["metric"])
    compares_with_the_paper(tree, measured)
    ledger = pl.read_csv(tree / "data/results/toy/ledger.csv").filter(experiment="toy-noisy-toy")
    assert set(ledger["accounted_epsilon"]) == {2.0}
    assert (tree / "data/reports/toy/index.html").is_file()
    assert 'id="attributes"' in (tree / "data/reports/toy/attacks.html").read_text(encoding="utf-8")
    (tree / "suites/toy/attack.yaml").write_text("attack: {kind: toy, systems: [toy-toy]}\ntraining_audit: null\n")
    execute(RUN, tree, "attack-toy", "check-metrics", "collect", "report")
    assert 'id="toy"' in (tree / "data/reports/toy/attacks.html").read_text(encoding="utf-8")


def no_other_stage_moved(tree: Path) -> None:
    before = keys.fingerprints(load(ROOT / "params.yaml"))
    for file in ("code.json", *(path.relative_to(ROOT) for path in ROOT.glob("suites/*/code.json"))):
        after = json.loads((tree / file).read_text(encoding="utf-8"))
        for stage, digests in after.items():
            others = {key: digest for key, digest in digests.items() if key != "toy"}
            assert stage in READ_TERMS or others.items() <= before[stage].items()


def compares_with_the_paper(tree: Path, measured: pl.DataFrame) -> None:
    """Its printed numbers and claims are those of the toy paper, on real data alone."""
    own, real = (
        pl.read_csv(tree / "data" / name, schema_overrides=COMPARISON)
        for name in ("results/toy/comparison.csv", "as-if-real-comparison.csv")
    )
    assert own["published"].count() == 0
    for metric, name in (("full/hit", "hit@5"), ("attribute/colour/toy/f1", "f1_colour@5")):
        (row,) = real.filter(method="ToyRec", metric=name).to_dicts()
        expected = measured.filter(experiment="toy-toy", metric=metric, k=5)["value"].mean()
        assert (row["published"], row["ours_mean"]) == (0.5, pytest.approx(expected, abs=1e-6))
    (claim,) = TOY.claim_rows({})
    assert pl.read_csv(tree / "data/as-if-real-claims.csv")["claim"].to_list() == [claim.claim]
    assert pl.read_csv(tree / "data/results/toy/claims.csv").is_empty()


def test_papers_and_formats_stay_apart_and_registries_keep_their_promises(
    tree: Path, touched: dict[str, set[str]]
) -> None:
    assert touched
    execute(LINT, tree)
    execute(CONTRACTS, tree)
    format_ = tree / "tasks/datasets/toy.py"
    format_.write_text(
        f"{format_.read_text(encoding='utf-8')}\nfrom tasks.datasets import movielens\n", encoding="utf-8"
    )
    with pytest.raises(AssertionError, match=r"tasks\.datasets\.toy -> tasks\.datasets\.movielens"):
        execute(LINT, tree)
