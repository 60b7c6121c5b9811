"""Records that a suite's results are collected from."""

import json
from pathlib import Path

import pytest

from tasks.errors import DataError
from tasks.stages import collect


def test_records_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    record = dict.fromkeys(collect.WORD_FIELDS, 0)
    path.write_text(json.dumps([record, record]))
    assert collect._records(path, collect.WORD_FIELDS) == [record, record]
    path.write_text(json.dumps([{name: 0 for name in collect.WORD_FIELDS if name != "origins"}]))
    with pytest.raises(DataError, match=r"record 0 has no 'origins'; run the stage"):
        collect._records(path, collect.WORD_FIELDS)
