"""Stages `collect` and `report`: what they write, and when they refuse."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from flows import cli
from tasks import contracts
from tasks.errors import ConfigurationError, DataError, PrivacyError
from tasks.evaluation.gains import GAINS
from tasks.reporting import files
from tasks.reporting.core import claims, comparison, ledger
from tasks.reporting.core.results import GAIN_ORDER, METRIC_ORDER
from tasks.stages import collect, report
from tasks.stages.common import RESULTS, RUNS, digest
from tests.reporting import example

INJECTED = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='alert(3)"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, nesting checked; texts; ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def values(self, *names: str) -> list[str]:
        return [value or "" for _, attributes in self.elements for name, value in attributes.items() if name in names]


def page(place: Path, suite: str) -> str:
    return (place / f"data/reports/{suite}/index.html").read_text(encoding="utf-8")


def written(place: Path) -> dict[str, bytes]:
    files = [file for folder in ("reports", "results") for file in (place / "data" / folder).rglob("*")]
    return {file.as_posix(): file.read_bytes() for file in files if file.is_file()}


def run(place: Path, suite: str) -> None:
    collected(place, suite)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        report.main(suite)


def collected(place: Path, suite: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        collect.main(suite)


@pytest.fixture(scope="module")
def gerai(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reported suite that is set beside its paper."""
    place = example.build(tmp_path_factory.mktemp("gerai"), sweep=True)
    run(place, "gerai")
    return place


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reported suite on synthetic data."""
    place = example.build(tmp_path_factory.mktemp("demo"), suite="demo", synthetic=True)
    run(place, "demo")
    return place


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of runs whose every text tries to break out."""
    place = example.build(
        tmp_path_factory.mktemp("hostile"), word=INJECTED, attributes=("gender", '"><script>alert(4)<svg onload=x>')
    )
    run(place, "gerai")
    return Page(page(place, "gerai"))


def test_tables_hold_the_agreed_columns(gerai: Path) -> None:
    results = gerai / "data/results/gerai"
    tables = ["claims.csv", "comparison.csv", "ledger.csv", "plots", "provenance.json", "summary.json"]
    assert sorted(file.name for file in results.iterdir()) == sorted([*files.WRITTEN, files.PAIRS, *tables])
    assert pl.read_parquet(results / "attacks.parquet").columns == ["experiment", "model", *GAINS.names, "data"]
    assert pl.read_parquet(results / "metrics.parquet").columns == [*contracts.METRICS.names, "data"]
    assert pl.read_csv(results / "comparison.csv").columns == list(comparison.COLUMNS)
    assert pl.read_csv(results / "ledger.csv").columns == list(ledger.COLUMNS)
    assert pl.read_csv(results / "claims.csv").columns == [*claims.COLUMNS, "data"]


def test_metrics_are_those_of_the_runs_sorted(gerai: Path) -> None:
    actual = pl.read_parquet(gerai / "data/results/gerai/metrics.parquet").drop("data")
    parts = [pl.read_parquet(file) for file in (gerai / "data/runs/gerai").rglob("metrics.parquet")]
    assert actual.equals(pl.concat(parts).select(actual.columns).sort(METRIC_ORDER))
    rows = list(csv.DictReader((gerai / "data/results/gerai/metrics.csv").open()))
    for row in rows[:: len(rows) // 50]:
        same = actual.filter(pl.all_horizontal(pl.col(key) == row[key] for key in ("experiment", "setting", "metric")))
        for k, values in same.group_by("k"):
            (cutoff,) = k
            assert float(row[f"mean@{cutoff}"]) == pytest.approx(values["value"].mean(), abs=5e-7)
            assert float(row[f"std@{cutoff}"]) == pytest.approx(values["value"].std(), abs=5e-7)
            assert int(row["n"]) == len(values)
    assert sum(1 for row in rows for column in row if column.startswith("mean") and row[column]) == len(
        actual.unique(["experiment", "setting", "metric", "k"])
    )


def test_gains_are_those_of_the_runs_sorted(gerai: Path) -> None:
    actual = pl.read_parquet(gerai / "data/results/gerai/attacks.parquet")
    parts = [
        pl.read_parquet(file).select(pl.lit(file.parts[-3]).alias("experiment"), pl.all())
        for file in (gerai / "data/runs/gerai").rglob("gains.parquet")
    ]
    assert actual.drop("model", "data").equals(pl.concat(parts).sort(GAIN_ORDER))
    assert set(actual["model"]) == set(actual["experiment"].str.strip_prefix("gerai-"))


def test_the_same_runs_give_the_same_bytes(gerai: Path) -> None:
    before = written(gerai)
    run(gerai, "gerai")
    assert written(gerai) == before
    curves = sum("plots/metrics/" in str(path) for path in before)  # two files of a system that was trained by epochs
    assert len(before) == len(files.WRITTEN) + 10 + curves
    assert curves > 0


def test_the_page_is_whole_and_can_be_navigated(gerai: Path, demo: Path) -> None:
    for place, suite in ((gerai, "gerai"), (demo, "demo")):
        actual = Page(page(place, suite))
        ids = actual.values("id")
        assert len(ids) == len(set(ids))
        fragments = [link for link in actual.values("href") if link.startswith("#")]
        assert len(fragments) >= 7
        assert {link[1:] for link in fragments} <= set(ids)
        tags = actual.tags()
        assert tags.count("h1") == tags.count("main") == tags.count("header") == 1
        assert tags.count("table") == tags.count("caption") > 5
        assert tags.count("figure") >= 4
        labelled = [
            attributes for tag, attributes in actual.elements if tag == "svg" and "aria-hidden" not in attributes
        ]
        assert all(attributes.get("aria-label") for attributes in labelled)


def test_the_page_loads_nothing_and_runs_its_own_script_alone(gerai: Path) -> None:
    text = page(gerai, "gerai")
    actual = Page(text)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(actual.tags())
    assert "default-src 'none'" in text
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}';" in text
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp|import\(", script)
    links = actual.values("href", "src", "srcset", "action", "data", "xlink:href", "poster")
    assert all(link.startswith(("#", "../../quality/", "data:text/csv;")) for link in links)
    style = text[text.index("<style>") : text.index("</style>")]
    assert not re.search(r"url\(|@import|expression\(", style)
    assert len(text.encode()) < 1_500_000


def test_data_docs_are_linked_where_they_lie(gerai: Path) -> None:
    docs = [link for link in Page(page(gerai, "gerai")).values("href") if link.startswith("..")]
    assert "../../quality/recommendations/gerai-bpr/index.html" in docs
    assert (gerai / "data/reports/gerai" / "../../quality").resolve() == (gerai / "data/quality").resolve()


def test_nothing_that_a_run_says_becomes_markup(hostile: Page) -> None:
    assert hostile.tags().count("script") == 1  # the page's own
    assert "img" not in hostile.tags()
    names = {name for _, attributes in hostile.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert hostile.tags().count("title") == 1
    # It is shown as text, in the heading, licence, revision, parameters, packages, ledger, audit, checks and links.
    assert sum("alert(1)" in text for text in hostile.texts) > 20
    assert any("alert(4)" in text for text in hostile.texts)
    assert all(link.startswith(("#", "../../quality/", "data:text/csv;")) for link in hostile.values("href"))


def test_synthetic_data_are_announced_and_compared_with_nothing(gerai: Path, demo: Path) -> None:
    text = page(demo, "demo")
    assert re.search(r'<h1>[^<]*<strong class="badge"[^>]*>SYNTHETIC</strong>', text)
    assert "<title>SYNTHETIC: " in text
    assert not re.search(r">difference [+−\d]", text), "nothing of ours minus anything printed"
    assert "paper 0." not in text
    assert "SYNTHETIC" not in page(gerai, "gerai")
    assert pl.read_csv(demo / "data/results/demo/comparison.csv")["published"].null_count() > 0


def test_claims_stand_below_their_table_and_in_a_file(gerai: Path, demo: Path) -> None:
    text = page(gerai, "gerai")
    table = pl.read_csv(gerai / "data/results/gerai/claims.csv")
    assert table.height > 30
    actual = Page(text)
    shown = [attributes for _, attributes in actual.elements if (attributes.get("class") or "").startswith("verdict ")]
    assert len(shown) == table.height
    for row in table.iter_rows(named=True):
        assert f"{row['claim']}. ".replace("'", "&#39;") in text
    second, third = text.index('<h3 id="table2">'), text.index('<h3 id="table3">')
    assert second < text.index("GERAI has the lowest F1 of all methods") < third
    assert text.index('<h3 id="figure2">') < text.index("d = 60 commonly protects best")
    assert 'class="verdict ' not in page(demo, "demo")
    assert pl.read_csv(demo / "data/results/demo/claims.csv").is_empty()


def test_sections_come_in_order(gerai: Path) -> None:
    sections = [
        "verdicts", "headline", "comparisons", "attacks", "figures", "published", "summary", "ledger", "quality",
        "provenance",
    ]  # fmt: skip
    text = page(gerai, "gerai")
    places = [text.index(f'<section id="{name}"') for name in sections]
    assert places == sorted(places)


def broken(place: Path, what: str) -> None:
    """Damage one input of the suite `gerai`."""
    runs = place / "data/runs/gerai"
    verdict = place / "data/quality/metrics/gerai.json"
    if what == "failed check":
        verdict.write_text(json.dumps(json.loads(verdict.read_text()) | {"success": False}))
    elif what == "no check":
        verdict.unlink()
    elif what == "no attack":
        (runs / "gerai-bpr/attack/metrics.parquet").unlink()
    elif what == "no gains":
        (runs / "gerai-bpr/attack/gains.parquet").unlink()
    elif what == "no targets":
        (runs / "gerai-bpr/attack/inputs.json").unlink()
    elif what == "no audit":
        (runs / "audit.json").unlink()
    elif what == "ledger":
        path = runs / "gerai-gerai/train/ledger.json"
        entries = json.loads(path.read_text())
        path.write_text(json.dumps([entries[0] | {"accounted_epsilon": -1.0}]))
    elif what == "mixed data":
        path = runs / "gerai-bpr/train/inputs.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"synthetic": True}))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("failed check", "gerai.json: these data failed their check"),
        ("no check", "gerai.json: not found"),
        ("no attack", "gerai-bpr/attack/metrics.parquet: no such table"),
        ("no gains", "gerai-bpr/attack/gains.parquet: no such table"),
        ("no targets", "gerai-bpr/attack/inputs.json: not found"),
        ("no audit", "audit.json: not found"),
        ("ledger", "gerai-gerai/train/ledger.json: entry 0 is not a ledger entry"),
        ("mixed data", "gerai-bpr/train/inputs.json: synthetic is True, but False"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_nothing_is_written(tmp_path: Path, what: str, message: str) -> None:
    place = example.build(tmp_path, models=("popularity", "bpr", "gerai"))
    broken(place, what)
    with pytest.raises(DataError, match=re.escape(message)):
        run(place, "gerai")
    assert not written(place)


def test_a_page_needs_nothing_but_the_results_and_the_published_figures(gerai: Path, tmp_path: Path) -> None:
    for part in ("results", "reference"):
        shutil.copytree(gerai / "data" / part, tmp_path / "data" / part)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        report.main("gerai")
    assert {file.removeprefix(tmp_path.as_posix()): content for file, content in written(tmp_path).items()} == {
        file.removeprefix(gerai.as_posix()): content for file, content in written(gerai).items()
    }


def test_the_command_draws_the_page_from_the_results_whatever_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corrected ledger or sentence shows at once, wherever in the code it stands."""
    place = example.build(tmp_path, models=("popularity",))
    run(place, "gerai")
    monkeypatch.chdir(place)
    drawn = place / "data/reports/gerai/index.html"
    text = drawn.read_text()
    drawn.unlink()
    assert cli._draw_report("gerai") == drawn.relative_to(place)
    assert drawn.read_text() == text
    drawn.write_text("drawn by other code")
    cli._draw_report("gerai")
    assert drawn.read_text() == text
    with pytest.raises(DataError, match=r"data/results/demo: no results; .* There are: gerai"):
        cli._draw_report("demo")


def test_provenance_stays_that_of_the_runs_that_gave_the_numbers(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("dp-popularity",))
    collected(place, "gerai")
    path, record = (
        place / "data/results/gerai/provenance.json",
        place / "data/provenance/train/gerai-dp-popularity.json",
    )
    before = path.read_bytes()
    assert b"numpy" in before
    record.write_text(json.dumps(json.loads(record.read_text()) | {"seconds": 99.0}))
    collected(place, "gerai")
    assert path.read_bytes() == before, "nothing changed but a clock"
    audits = place / "data/runs/gerai/audit.json"
    audits.write_text(json.dumps([record | {"samples": 7} for record in json.loads(audits.read_text())]))
    collected(place, "gerai")
    assert b"99.0" in path.read_bytes()
    shutil.rmtree(place / "data/provenance")
    audits.write_text(json.dumps([record | {"samples": 8} for record in json.loads(audits.read_text())]))
    collected(place, "gerai")
    assert b"99.0" in path.read_bytes(), "of outputs that were pulled, what is known of them stays"
    path.unlink()
    run(place, "gerai")
    assert "Revision, time and machine were not recorded" in page(place, "gerai")


def test_a_private_line_that_nobody_audited_is_not_collected(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("dp-popularity",))
    (place / "data/runs/gerai/audit.json").write_text("[]")
    with pytest.raises(PrivacyError, match=r"audit\.json: dp-popularity, base: noisy counts made-up: neither audited"):
        run(place, "gerai")


def test_published_figures_that_are_none_are_refused(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("popularity",))
    (place / "data/reference/paper_tables.csv").write_text("paper,artefact\ngerai,table2\n")
    with pytest.raises(DataError, match=r"paper_tables\.csv: not the table of published figures"):
        run(place, "gerai")
    assert not (place / "data/reports").exists()


def test_an_unknown_suite_is_refused(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("popularity",))
    with pytest.raises(ConfigurationError, match="there is no 'nothing'; known: gerai"):
        run(place, "nothing")
    (place / "data/quality/metrics/gerai.json").unlink()
    with pytest.raises(DataError, match=r"metrics/gerai\.json: not found"):
        run(place, "gerai")


def test_a_suite_without_private_systems_or_training_is_reported(tmp_path: Path) -> None:
    place = example.build(tmp_path, models=("popularity",))
    run(place, "gerai")
    text = page(place, "gerai")
    assert "Systems with a finite accounted ε for everything they learn from: 0 of 1." in text
    assert "training-curves" not in text


def test_an_audit_of_training_that_the_suite_no_longer_has_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC leaves the output of a stage that is gone where it was."""
    example.build(tmp_path, suite="demo", synthetic=True)
    monkeypatch.chdir(tmp_path)
    collect.main("demo")
    before = digest(RESULTS)
    (RUNS / "demo" / "one_run.json").write_text('[{"experiment": "demo-bpr"}]', encoding="utf-8")
    collect.main("demo")
    assert digest(RESULTS) == before
