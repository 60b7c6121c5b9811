"""Ctrl-C while a stage writes: nothing half-written is left, and a rerun gives what an undisturbed run gives.

The stages that train, attack, download, preprocess and perturb have theirs in their own test modules.
"""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tasks.core.errors import DataError
from tasks.pipeline.common import QUALITY, REPORTS, RESULTS, digest, require_passed
from tasks.stages import check, collect, report
from tests.stages import example, tiny

pytestmark = pytest.mark.slow


def interrupted(call: Callable[[], None], target: object, name: str, nth: int) -> None:
    """Run `call`, pressing Ctrl-C when it calls `target.name` for the nth time."""
    original, calls = getattr(target, name), iter(range(1, 100))

    def pressing_control_c(*arguments, **options):
        if next(calls) == nth:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, pressing_control_c)
        with pytest.raises(KeyboardInterrupt):
            call()


def leftovers() -> list[Path]:
    return list(Path("data").rglob("*.partial"))


def test_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny.build(tmp_path)
    monkeypatch.setattr(check, "LAYERS", {"processed": lambda *_: check.Subject([Path("params.yaml")], list)})
    (QUALITY / "processed" / "tiny.json").unlink()
    interrupted(lambda: check.main("processed/tiny"), check, "write_json", 1)
    assert not (QUALITY / "processed" / "tiny.json").exists()
    assert not (QUALITY / "processed" / "tiny").exists()
    assert not leftovers()
    check.main("processed/tiny")
    assert require_passed("processed", "tiny")["success"]
    (tmp_path / "params.yaml").write_text("changed", encoding="utf-8")
    with pytest.raises(DataError, match="not the file that was checked"):
        require_passed("processed", "tiny")


def test_collect_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example.build(tmp_path, suite="demo", synthetic=True)
    monkeypatch.chdir(tmp_path)
    collect.main("demo")
    report.main("demo")
    undisturbed = digest(REPORTS, RESULTS)
    for stage, nth in ((collect, 1), (collect, 2), (report, 1), (report, 2), (report, 3)):
        interrupted(lambda stage=stage: stage.main("demo"), pl.DataFrame, "write_csv", nth)
        assert digest(REPORTS, RESULTS) == undisturbed, "what was there before is still there, whole"
        assert not leftovers()
    report.main("demo")
    assert digest(REPORTS, RESULTS) == undisturbed
