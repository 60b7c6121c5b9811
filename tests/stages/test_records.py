"""Records that a suite's results are collected from."""

import json
from pathlib import Path

import pytest

from tasks.errors import DataError
from tasks.reporting.sections import one_run
from tasks.stages import collect


def test_records_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "one_run.json"
    record = dict.fromkeys(one_run.FIELDS, 0)
    path.write_text(json.dumps([record, record]))
    assert collect._records(path, one_run.FIELDS) == [record, record]
    path.write_text(json.dumps([{name: 0 for name in one_run.FIELDS if name != "control"}]))
    with pytest.raises(DataError, match=r"record 0 has no 'control'; run the stage"):
        collect._records(path, one_run.FIELDS)
