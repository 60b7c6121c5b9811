"""What holds for all published data sets: what is said of them, and what is asked of a user who has no mirror."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.config.tasks import resolve
from tasks.core.errors import ByHandError, DataError
from tasks.datasets import SOURCES
from tasks.datasets.fetch import FormFile, Places, RemoteFile

PUBLISHED = [name for name, module in SOURCES.items() if name != "custom" and not resolve(module).SOURCE.synthetic]
FORMS = [name for name in PUBLISHED if isinstance(resolve(SOURCES[name]).SOURCE.files[0], FormFile)]
PARTS: list[tuple[str, dict[str, str], str]] = [
    ("ml_1m", {"archive": "first-487650-rows"}, "487,650 of 1,000,209"),
    ("netflix", {"ratings": "first-20-movies"}, "42,813 ratings"),
    ("tmall", {"layout": "small"}, "62 users"),
    ("yelp", {"part": "sample"}, "999"),
]


def usual(name: str) -> Any:
    """The options of the usual entry in params.yaml."""
    source = resolve(SOURCES[name])
    return source.ObtainOptions.model_validate(yaml.safe_load(source.SOURCE.entry)["obtain"])


@pytest.mark.parametrize("name", FORMS)
def test_without_a_mirror_the_user_is_asked_for_the_published_files(tmp_path: Path, name: str) -> None:
    module, options = resolve(SOURCES[name]), usual(name)
    places = Places(None, tmp_path / "placed", tmp_path / "downloads")
    files = module.source(options).files if hasattr(module, "source") else module.SOURCE.files
    with pytest.raises(ByHandError) as caught:
        module.obtain(tmp_path, places, options)
    _, page, what, where = str(caught.value).splitlines()
    assert any(str(places.placed / file.name) in where and file.page in page and file.what in what for file in files)
    for file in files:
        (places.placed / file.name).parent.mkdir(parents=True, exist_ok=True)
        (places.placed / file.name).write_text("1\n")
    if any(file.sha256 for file in files):
        with pytest.raises(DataError, match=r"size is 2 bytes, expected .* it is not the published file"):
            module.obtain(tmp_path, places, options)
    elif name != "netflix":
        module.obtain(tmp_path, places, options)
        assert all((tmp_path / file.below).read_text() == "1\n" for file in files)


@pytest.mark.parametrize(("name", "options", "words"), PARTS)
def test_a_part_is_not_described_as_the_whole(name: str, options: dict[str, str], words: str) -> None:
    module = resolve(SOURCES[name])
    part, every_file = module.source(module.ObtainOptions.model_validate(options)), module.source(usual(name))
    assert every_file == module.SOURCE
    assert words in part.holds
    assert part.licence == every_file.licence
    assert part.files != every_file.files
    assert all(isinstance(file, FormFile | RemoteFile) for file in part.files)
