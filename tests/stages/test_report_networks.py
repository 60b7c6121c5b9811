"""Stage `collect` of suites that embed users: what it reads of a pair of networks."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.errors import DataError
from tasks.stages import collect_parts


def test_a_pair_is_read_network_by_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    feature = {"name": "gender", "sensitive": True}
    known: dict[str, object] = {
        "schema.json": {"networks": ["one", "two"]},
        "counts.json": [{"step": "published", "links": 9}, {"step": "anchors-once", "links": 7}],
        "one/schema.json": {"labels": ["art"], "features": [feature], "tables": ["social", "vectors"]},
        "one/counts.json": [{"users": 5, "posts": 0, "links": 3}],
        "two/schema.json": {"labels": [], "features": [], "tables": ["users"]},
        "two/counts.json": [{"users": 4, "posts": 0, "links": 0}],
    }
    for name, content in known.items():
        file = tmp_path / "data/processed/made-up" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    suite = SimpleNamespace(data="made-up", aligned={})
    params: Any = SimpleNamespace(suites={"tiny": suite})
    collected = collect_parts.collect_networks("tiny", params)
    (first, second) = collected["networks"]
    assert collected["anchors"] == 7
    assert (first.users, first.friendships, first.labelled, first.sensitive, first.texts) == (
        5,
        3,
        True,
        ("gender",),
        "vectors",
    )
    assert (second.labelled, second.sensitive, second.texts, second.attributed) == (False, (), "none", False)
    (tmp_path / "data/processed/made-up/schema.json").write_text('{"networks": []}', encoding="utf-8")
    with pytest.raises(DataError, match="needs a pair"):
        collect_parts.collect_networks("tiny", params)
