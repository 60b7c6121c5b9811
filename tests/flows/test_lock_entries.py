"""Entries of locks are written as DVC writes them."""

from pathlib import Path

import pytest
from dvc.utils.serialize import load_yaml, modify_yaml

from flows.locks import write_entry

LOCK = Path(__file__).parents[2] / "suites/frontier-ciao/dvc.lock"
STAGES = list(load_yaml(LOCK)["stages"])
ENTRY = {"cmd": "python -m x " + "y" * 200, "params": {"params.yaml": {"none": None, "digest": "12345678"}}}


@pytest.mark.parametrize("name", [STAGES[0], STAGES[len(STAGES) // 2], STAGES[-1], "new@stage"])
@pytest.mark.parametrize("text", [LOCK.read_text(encoding="utf-8"), LOCK.read_text() + "datasets: []\n", ""])
def test_an_entry_is_written_as_dvc_writes_it_among_all(name: str, text: str, tmp_path: Path) -> None:
    """Into the middle, at the end, anew; a lock with data sets, and none, are left to DVC."""
    lock, new, expected = (tmp_path / file for file in ("dvc.lock", "new", "expected"))
    for path in (lock, expected):
        path.write_text(text, encoding="utf-8")

    def dump(path: Path) -> None:
        with modify_yaml(path) as data:
            if not data:
                data["schema"] = "2.0"
            data["stages"] = data.get("stages", {})
            data["stages"].update({name: ENTRY})

    dump(expected)
    write_entry(lock, new, name, lambda: dump(new))
    assert new.read_text(encoding="utf-8") == expected.read_text(encoding="utf-8")
