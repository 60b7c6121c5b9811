"""Entries of locks are written as DVC writes them."""

from pathlib import Path

import pytest
from dvc.utils.serialize import load_yaml, modify_yaml

from flows.locks import write_entry

SUITES = Path(__file__).parents[2] / "suites"
PLAIN, REPEATS = (
    (SUITES / suite / "dvc.lock").read_text(encoding="utf-8") for suite in ("membership", "frontier-ciao")
)
ENTRY = {"cmd": "python -m x " + "y" * 200, "params": {"params.yaml": {"none": None, "digest": "12345678"}}}


@pytest.mark.parametrize("where", [0, 0.5, 1, None])
@pytest.mark.parametrize("text", [PLAIN, PLAIN + "datasets: []\n", REPEATS, ""], ids=("plain", "data", "repeats", "no"))
def test_an_entry_is_written_as_dvc_writes_it_among_all(text: str, where: float | None, tmp_path: Path) -> None:
    """Anew, or in the place of the first, a middle, or the last one."""
    lock, new, expected = (tmp_path / file for file in ("dvc.lock", "new", "expected"))
    for path in (lock, expected):
        path.write_text(text, encoding="utf-8")
    stages = list(load_yaml(lock).get("stages", {}))
    name = "new@stage" if where is None or not stages else stages[round(where * (len(stages) - 1))]

    def dump(path: Path) -> None:
        with modify_yaml(path) as data:
            if not data:
                data["schema"] = "2.0"
            data["stages"] = data.get("stages", {})
            data["stages"].update({name: ENTRY})

    dump(expected)
    write_entry(lock, new, name, lambda: dump(new))
    assert new.read_text(encoding="utf-8") == expected.read_text(encoding="utf-8")
