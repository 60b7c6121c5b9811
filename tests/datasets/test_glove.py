import zipfile
from pathlib import Path

import numpy as np
import pytest

from tasks.core.errors import DataError
from tasks.datasets import glove, text
from tasks.datasets.fetch import Places
from tasks.datasets.transfer import Transfer

NUMBERS = np.random.default_rng(0).normal(size=(4, glove.WIDTH))
WORDS = ["the", '"', "3.5", "naïve"]
LINES = [" ".join([word, *map(repr, numbers.tolist())]) for word, numbers in zip(WORDS, NUMBERS, strict=True)]


def written(folder: Path, lines: list[str], end: str = "\n") -> Path:
    path = folder / "glove.txt"
    path.write_bytes(end.join([*lines, ""]).encode())
    return path


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_bit_of_every_number_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, size: int
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    words, vectors = glove.read(written(tmp_path, LINES, end))
    assert words == WORDS
    assert (vectors == NUMBERS).all()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINES[1].rpartition(" ")[0], "50 fields instead of 51"),
        (f"new york {LINES[1].partition(' ')[2]}", "52 fields instead of 51"),
        (f"{LINES[1].rpartition(' ')[0]} x", "number 50 is 'x', not a number"),
        (f"{LINES[1].rpartition(' ')[0]} nan", "number 50 is nan, not a finite number"),
        (LINES[0], "word the is repeated"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_line_that_is_not_a_word_and_its_numbers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str, size: int
) -> None:
    monkeypatch.setattr(text, "BLOCK", size)
    path = written(tmp_path, [LINES[0], line, LINES[2]])
    with pytest.raises(DataError, match=f"glove.txt:2: {message}"):
        glove.read(path)


def test_the_official_archive_is_taken_where_nothing_is_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "placed" / glove.ARCHIVE.name
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("glove.6B.100d.txt", "the")
        archive.writestr(glove.FILE.name, LINES[0])
    places = Places(mirror=None, placed=path.parent, downloads=tmp_path / "downloads")
    with glove.local(places) as file:
        assert glove.read(file)[0] == WORDS[:1]
    assert [*path.parent.iterdir()] == [path]
    path.unlink()
    refused = DataError("no answer")
    monkeypatch.setattr(Transfer, "run", lambda *_, **__: (_ for _ in ()).throw(refused))
    with pytest.raises(DataError, match="no answer"), glove.local(places):
        pass


def test_the_mirrors_part_reads_whole(mirror: Path) -> None:
    words, vectors = glove.read(mirror / glove.FILE.mirror_path)
    assert (len(words), vectors.shape) == (5050, (5050, 50))
    assert words[:2] == ["the", ","]
    assert vectors[0, :2].tolist() == [0.418, 0.24968]
