"""The import package `dprec`: stable names for notebooks, without what trains models and regenerates papers."""

import json
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import dprec
from tests.command import python
from tests.parameters import ROOT
from tests.test_readme import commands

MODULES = ("accounting", "attacks", "audits", "mechanisms", "metrics", "release")
PIPELINE = (
    *("dask", "dgl", "distributed", "dvc", "fastapi", "filelock", "fsspec", "great_expectations", "httpx", "pandas"),
    *("prefect", "psutil", "pyarrow", "tenacity", "torch", "yaml"),
)
"""What `dprec[audit]` does not bring."""
ALONE = """
import importlib, sys

ABSENT = sys.argv[2].split()

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.path[:] = [sys.argv[1]] + [path for path in sys.path if "editable" not in path]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
for name in sys.argv[3].split():
    module = importlib.import_module(f"dprec.{name}")
    assert module.__file__.startswith(sys.argv[1]), module.__file__
sys.argv = ["dprec", *sys.argv[4:]]
from flows.cli import main
main()
"""


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_documented(name: str) -> None:
    module = import_module(f"dprec.{name}")
    page = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    for exported in module.__all__:
        assert getattr(module, exported).__doc__, exported
        assert f"`{exported}`" in page, f"docs/library.md does not name {name}.{exported}"


def test_modules_and_the_version_are_attributes_that_are_loaded_when_asked_for() -> None:
    code = "import sys, dprec; print('numpy' in sys.modules, *(getattr(dprec, of).__name__ for of in dprec.__all__))"
    assert python(code).split() == ["False", *(f"dprec.{name}" for name in MODULES)]
    assert dprec.__version__ == version("dprec")


def test_the_command_shows_the_installed_version_anywhere(tmp_path: Path) -> None:
    alone = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); from flows.cli import main; main()"]
    done = subprocess.run([*alone, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"dprec {version('dprec')}\n"


@pytest.mark.slow
def test_the_wheel_serves_the_library_and_the_audit_without_the_pipeline(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    copy = tmp_path / "copy"
    for name in ("dprec", "flows", "tasks"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    built = [*pip, "install", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "wheel"), str(copy)]
    subprocess.run(built, check=True, capture_output=True)
    lists, train, people = tmp_path / "lists.csv", tmp_path / "train.csv", tmp_path / "people.csv"
    people.write_text("user,plan\n" + "".join(f"{user},{user % 2}\n" for user in range(60)))
    pairs = [(user, item) for user in range(60) for item in range(user % 7, 60, 3)]
    train.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in pairs))
    served = [(user, (user + 1) % 3 + 3 * place, place + 1) for user in range(60) for place in range(5)]
    lists.write_text("user,item,rank\n" + "".join(f"{user},{item},{rank}\n" for user, item, rank in served))
    audit = ["audit", "--train", str(train), "--recommendations", str(lists)]
    audit += ["--users", str(people), "--out", str(tmp_path / "audit")]
    alone = [sys.executable, "-c", ALONE, str(tmp_path / "wheel"), " ".join(PIPELINE), " ".join(MODULES), *audit]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr  # there is nothing held back
    assert json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert (tmp_path / "wheel" / "dprec" / "py.typed").is_file()
    rows = [f"{user},{item}\n" for user in range(2_000) for item in range(user % 7, 120, 3 + user % 5)]
    (tmp_path / "ratings.csv").write_text("user,item\n" + "".join(rows))
    (tmp_path / "own.csv").write_text("user,item\n" + "".join(rows[:100]))
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in range(120)))
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/release.md")]
    shown = dict.fromkeys(
        command for page in pages for command in commands(page) if command.startswith("dprec release")
    )
    assert len(shown) == 4
    for command in shown:
        absent = " ".join((*PIPELINE, "sklearn"))
        alone = [sys.executable, "-c", ALONE, str(tmp_path / "wheel"), absent, "release", *command.split()[1:]]
        done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        assert command.split()[2] != "recommend" or lists.read_text().count("\n") == 1 + 20 * len(
            {row.split(",")[0] for row in rows[:100]}
        )


def test_a_command_of_the_pipeline_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "dprec").symlink_to(ROOT / "dprec")
    alone = [sys.executable, "-c", ALONE, str(tmp_path), " ".join(PIPELINE), "", "check"]
    done = subprocess.run(alone, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("dprec: ")
    assert "pip install '.[pipeline]' in a clone" in line


def test_the_quickstart_runs(capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((ROOT / "docs/quickstart.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "one release: ε = 1.00; three of them: ε = 3.00" in said
    assert "refuted" in said
