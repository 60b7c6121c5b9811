"""Where modules are loaded by name, so that fingerprints know of all code that decides an output."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_modules_are_loaded_by_name_only_through_registries() -> None:
    """Wherever else a module was loaded by its name, no fingerprint would know."""
    dynamic = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tasks").rglob("*.py")
        if re.search(r"import_module\(|__import__\(|\bexec\(|(?<!\.)\bresolve\(", path.read_text(encoding="utf-8"))
    }
    assert dynamic == {
        "tasks/attacks/attribute.py",  # ATTACKERS
        "tasks/audits/__init__.py",  # AUDITS
        "tasks/models/__init__.py",  # MODELS
        "tasks/stages/convert.py",  # FORMATS
        "tasks/stages/data.py",  # no stage
        "tasks/stages/download.py",  # SOURCES
        "tasks/stages/evaluators/base.py",  # TASKS
        "tasks/stages/check.py",  # TASKS, ATTACKS
        "tasks/stages/collect.py",  # TASKS, ATTACKS
        "tasks/stages/units.py",  # units of stages that have a fingerprint each
        "tasks/stages/table.py",  # ATTACKS: it decides no output
        "tasks/config/tasks.py",  # which all these resolve
        "tasks/stages/perturb.py",  # FEATURES, NETWORKS
        "tasks/stages/preprocess.py",  # PROTOCOLS
        "tasks/stages/report.py",  # ATTACKS, what a paper.yaml names
        "tasks/config/network_references.py",  # the same
        "tasks/config/references.py",  # checks of parameters, which no stage but `code` runs
    }
