"""What holds for all formats of text: line ends, blocks, and files that are empty, missing or something else."""

from pathlib import Path

import polars as pl
import pytest

from tasks.datasets import text
from tasks.errors import DataError
from tests.fuzz.samples import Sample, samples, write

FORMATS = {
    name: sample for name, sample in samples().items() if name not in ("archive", "params", "glove", "custom, parquet")
}
FILES = [(name, file) for name, sample in FORMATS.items() for file in sample.files]
TEXT = [(name, file) for name, file in FILES if not file.endswith(".npy")]


def read(sample: Sample, folder: Path) -> dict[Path, pl.DataFrame]:
    """The raw tables of the files in `folder`."""
    target = folder.with_name("tables")
    target.mkdir(exist_ok=True)
    sample.read(folder, target)
    return {path.relative_to(target): pl.read_parquet(path) for path in sorted(target.rglob("*.parquet"))}


def refused(name: str, folder: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(FORMATS[name], folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_line_ends_a_missing_last_one_and_blocks_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder, sample = tmp_path / "raw", FORMATS[name]
    write(sample, folder)
    expected = read(sample, folder)
    monkeypatch.setattr(text, "BLOCK", 30)
    for end in (b"\n", b"\r\n"):
        for file, content in sample.files.items():
            if (name, file) in TEXT and name != "weibo":  # whose fields have line ends
                (folder / file).write_bytes(content.rstrip(b"\n").replace(b"\n", end))
        actual = read(sample, folder)
        assert actual.keys() == expected.keys()
        assert all(actual[path].equals(table) for path, table in expected.items())


@pytest.mark.parametrize(("name", "file"), FILES)
def test_an_empty_a_missing_and_a_binary_file_are_named(tmp_path: Path, name: str, file: str) -> None:
    folder = tmp_path / "raw"
    write(FORMATS[name], folder)
    for rubbish in (bytes(range(256)) * 20, bytes(range(1, 256)) * 20, b"\xff" * 100):
        (folder / file).write_bytes(rubbish)
        refused(name, folder, ":")
    for nothing in (b"", b"\n"):
        (folder / file).write_bytes(nothing)
        refused(name, folder, f"{file}: is empty" if (name, file) in TEXT else f"{file}: ")
    (folder / file).unlink()
    if "combined_data" not in file:  # of which there may be fewer
        refused(name, folder, "no file of|not found")
