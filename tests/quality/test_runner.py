"""What a check leaves behind: a verdict, and data docs that need no network and believe no data."""

import re
import socket
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.quality import runner
from tasks.quality.rules import Table, between, in_set, not_blank, not_null, row_count, unique
from tests.quality import tables

RESULT = {
    "table": str,
    "expectation": str,
    "column": str | None,
    "success": bool,
    "unexpected_count": int,
    "rows": list,
    "detail": str,
}
REPORT = Path(__file__).resolve().parents[2] / "tasks/pages/templates/base.html.j2"
POLICY = next(
    line.replace(" script-src 'sha256-{{ digest }}';", "")
    for line in REPORT.read_text(encoding="utf-8").splitlines()
    if "Content-Security-Policy" in line
)
"""The line by which a report forbids itself all that would be loaded, without the one script that reports have."""
NASTY = "<script>alert('$x & y')</script>"


def faulty() -> list[Table]:
    """A table with faults of several kinds, and markup in a value and in a column's name."""
    frame = pl.DataFrame({"user": [1, 2, 2, None], "item": [1, 1, 1, 3], "rating": [1.0, 6.0, None, 5.0]})
    frame = frame.with_columns(pl.Series(NASTY, [NASTY, " ", "a", "b"]))
    rules = (
        row_count(9),
        *not_null("user"),
        between("rating", 1, 5),
        unique("user"),
        unique("user", "item"),
        not_blank(NASTY),
        in_set(NASTY, ["a", "b"]),
        *not_null("item"),
    )
    return [Table("ratings", frame, rules, ids=("user",))]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"tried to reach {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("offline")
def test_the_verdict_says_what_was_judged_and_which_rows_failed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    verdict = runner.run("raw", "tiny", faulty(), {"data/raw/tiny/u.data": "ab12"}, tmp_path)
    assert {key: verdict[key] for key in ("contract", "name", "success", "evaluated", "failed", "checked")} == {
        "contract": "raw",
        "name": "tiny",
        "success": False,
        "evaluated": 8,
        "failed": 7,
        "checked": {"data/raw/tiny/u.data": "ab12"},
    }
    for result in verdict["results"]:
        assert list(result) == list(RESULT)
        assert all(isinstance(value, RESULT[key]) for key, value in result.items())
    assert [(result["unexpected_count"], result["rows"]) for result in verdict["results"]] == [
        (5, []),
        (1, [3]),
        (1, [1]),
        (2, [1, 2]),
        (2, [1, 2]),
        (1, [1]),
        (2, [0, 1]),
        (0, []),
    ]
    assert verdict["results"][2]["detail"] == "must be from 1 to 5; 1 of 4 rows: row 1 (user=2): rating is 6.0"
    assert capfd.readouterr() == ("", "")


def test_the_docs_can_be_browsed_offline_and_show_data_as_text(tmp_path: Path) -> None:
    good = tables.contract("metrics")
    runner.run("raw", "tiny", faulty() + good, {"data/raw/tiny/u.data": "ab12"}, tmp_path)
    pages = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    index = pages["index.html"]
    assert "raw/tiny" in index
    assert "ab12" in index
    links = set(re.findall(r'href="([^"#]+)"', index))
    assert links == pages.keys() - {"index.html"}
    assert len(links) == 3
    for page in pages.values():
        assert "raw/tiny" in page
        assert not re.search(r"https?:|<script|<link|<img|@import|url\(", page)
        assert page.index(POLICY) < page.index("<style>")
    assert "alert(" in pages["ratings.html"]
    assert "must not be missing; 1 of 4 rows: row 3 (user=None)" in pages["ratings.html"]


def test_a_rule_that_cannot_be_judged_is_an_error_not_a_pass(tmp_path: Path) -> None:
    table = Table("t", pl.DataFrame({"x": ["a"]}), (between("x", 0, 1),))
    with pytest.raises(pl.exceptions.PolarsError):
        runner.run("raw", "tiny", [table], {}, tmp_path)
