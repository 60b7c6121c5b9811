"""What results say of the data that they are of: a hash of public data, none of someone's own."""

from pathlib import Path

import pytest

from tasks.config.params import load
from tasks.stages import collect
from tasks.stages.common import PROCESSED, digest
from tests.stages import tiny


def test_results_have_no_hash_of_somebodys_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would confirm any guess at the data, one user's presence among others."""
    tiny.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    params = load()
    assert collect.data_fingerprints("tiny", params) == {"tiny": digest(PROCESSED / "tiny")}
    source = params.datasets["tiny"].model_copy(update={"source": "custom"})
    own = params.model_copy(update={"datasets": {"tiny": source}})
    assert collect.data_fingerprints("tiny", own) == {}
