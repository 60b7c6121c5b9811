"""The site: links, what pages may hold and ask for, documents, and that numbers are cells of committed tables."""

import importlib
import inspect
import json
import re
from html import unescape
from pathlib import Path, PurePosixPath

import polars as pl
import pytest
from jsonschema import Draft202012Validator

from tasks.core.errors import ConfigurationError
from tasks.pages import documents, site
from tasks.pages.page import epsilon, number, rounded_down
from tasks.results.cards import Card, schema
from tasks.results.standings import boards
from tasks.stages import report
from tasks.stages import site as stage
from tests.command import python
from tests.pages import committed
from tests.pages.committed import text_of
from tests.pages.conftest import DOCUMENTS

HEAVY = ("torch", "scipy.stats", "sklearn", "great_expectations", "dvc", "prefect")


def joined(file: str, link: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(file).parent / link).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def cells(html: str, table: str) -> dict[str, list[str]]:
    """Id of a row -> its cells as text, of a table by its id."""
    (body,) = re.findall(rf'(?s)<table[^>]*id="{table}".*?</table>', html)
    rows = re.findall(r'(?s)<tr id="([^"]+)"[^>]*>(.*?)</tr>', body)
    return {name: [text_of(cell) for cell in re.findall(r"(?s)<t[hd][^>]*>(.*?)</t[hd]>", row)] for name, row in rows}


def test_every_link_leads_to_a_page_or_a_part_of_the_site(files: dict[str, str]) -> None:
    pages = {file: text for file, text in files.items() if file.endswith(".html")}
    ids = {file: re.findall(r'\bid="([^"]+)"', text) for file, text in pages.items()}
    for file, text in pages.items():
        assert len(ids[file]) == len(set(ids[file])), file
        for link in map(unescape, re.findall(r'\bhref="([^"]+)"', text)):
            if link.startswith(("data:text/csv;", "https://", "http://")):
                continue
            path, _, part = link.partition("#")
            target = joined(file, path) if path else file
            if target in (stage.SCHEMA, "docs/audit.html"):
                continue
            assert target in files, (file, link)
            assert not part or part in ids[target], (file, link)


def test_pages_ask_for_nothing_and_run_one_script_that_their_policy_names(files: dict[str, str]) -> None:
    for file, text in files.items():
        if not file.endswith(".html"):
            continue
        assert len(re.findall(r"<script", text)) == 1, file
        assert "default-src 'none'" in text
        assert not re.search(r"<(img|iframe|link|base|object|embed)\b|@import|url\(|\bsrc=", text), file
        assert not re.search(r"\son\w+=\"", re.sub(r"(?s)<script>.*?</script>", "", text)), file
    assert "&lt;script&gt;alert(1)" in files["docs/index-of-nothing.html"]


def test_what_data_are_named_is_escaped(made: list[site.Made]) -> None:
    name = "</td><script>broken=1</script>{{ 7 * 7 }}"
    (of,) = [each for each in made if each.facts.suite == "membership"]
    entries = of.entries.with_columns(system=pl.lit(name), publication=pl.lit("x"))
    (board,) = boards([(of.measure, entries)])
    known = {card.basic.experiment: card for card in of.cards}
    for page in site.board_pages([board], known, {board.dataset: {}}):
        html = site.render(page)
        assert len(re.findall("<script", html)) == 1
        assert "49" not in text_of(html) or "{{ 7 * 7 }}" in text_of(html)


def test_the_papers_of_the_index_have_the_cells_of_their_tables(files: dict[str, str]) -> None:
    rows = cells(files["index.html"], "table-papers")
    for paper, suite, level in (("gerai", "gerai", "interaction"), ("privsr", "privsr", "interaction")):
        results = committed.results(suite)
        of = committed.paper(suite)
        own = next(s for s in results.suite.systems if s.label == of.methods[of.name])
        lines = pl.read_csv(committed.RESULTS / suite / "ledger.csv").filter(experiment=own.experiment, setting="base")
        lines = lines.filter(pl.col("protects").is_in(["interaction", "rating"]))
        audits = pl.read_csv(committed.RESULTS / suite / "audits.csv")
        numbers = set(lines["line"])
        proved = [row["audited_epsilon"] for row in audits.to_dicts() if numbers & set(json.loads(row["lines"]))]
        text = " | ".join(rows[f"paper-{paper}"])
        assert f"claimed {epsilon(lines['claimed_epsilon'].max())}" in text
        assert f"accounted {epsilon(lines['accounted_epsilon'].max())}" in text
        assert (f"audited ≥ {epsilon(rounded_down(max(proved)))}" if proved else "not audited") in text
        metrics = pl.read_csv(committed.RESULTS / suite / "metrics.csv").filter(
            experiment=own.experiment, setting="base", metric=of.utility.metric
        )
        column = f"mean@{of.headline_k}" if of.headline_k else "mean"
        assert number(metrics[column][0], of.utility.digits) in text
        claims = committed.results(suite).claims["verdict"].to_list()
        tested = len(claims) - claims.count("not-run")
        assert f"{claims.count('supported')} of {tested} {claims.count('contradicted')} contradicted" in text
        assert level in text_of(files["index.html"])


def test_leaderboards_have_the_means_of_metrics_csv_and_levels_of_their_own(files: dict[str, str]) -> None:
    html = files["leaderboards/ml-100k.html"]
    means = {
        suite: {
            row["experiment"]: row["mean@10"]
            for row in pl.read_csv(committed.RESULTS / suite / "metrics.csv").to_dicts()
            if (row["setting"], row["metric"]) == ("base", "full/ndcg")
        }
        for suite in ("gerai", "membership")
    }
    seen = 0
    for level in ("user", "interaction", "feature"):
        for row in cells(html, f"table-ndcg10-by-{level}-level-ε").values():
            system, suite = row[0].split()[0], row[1]
            assert row[2].split()[0] == number(means[suite][f"{suite}-{system}"])
            seen += 1
    assert seen >= 9
    for table in re.findall(r"(?s)<table.*?</table>", html):
        assert len({level for level in ("user", "interaction", "feature") if f"{level}-level ε" in table}) <= 1


def ndcg(suite: str) -> pl.DataFrame:
    """NDCG@10 of each experiment and setting, with the largest user-level ε that its ledger has, if all are finite."""
    metrics = pl.read_csv(committed.RESULTS / suite / "metrics.csv").filter(metric="full/ndcg")
    ledger = pl.read_csv(committed.RESULTS / suite / "ledger.csv").group_by("experiment", "setting")
    spent = ledger.agg(epsilon=pl.col("accounted_epsilon").max(), units=pl.col("unit").unique())
    return metrics.join(spent.explode("units"), on=("experiment", "setting"), how="left")


@pytest.mark.parametrize("suite", ["frontier-ciao", "frontier-ml-100k", "frontier-ml-1m"])
def test_answers_and_costs_of_the_index_follow_from_metrics_and_ledgers(suite: str, shipped: dict[str, str]) -> None:
    table = ndcg(suite)
    base = {
        row["experiment"].removeprefix(f"{suite}-"): row["mean@10"] for row in table.filter(setting="base").to_dicts()
    }
    ceiling = max(base[name] for name in ("ials", "ease") if name in base)
    private = table.filter(pl.col("epsilon").is_finite(), units="user")
    name, users, *shown = cells(shipped["index.html"], "table-answers")[f"best-{suite}"]
    counts = pl.read_csv(committed.RESULTS / suite / "counts.csv").filter(dataset=name.split()[0])
    assert users == f"{counts['users'][-1]:,}"
    for limit, text in zip((0.5, 1, 2, 4, 8), shown, strict=True):
        within = private.filter(pl.col("epsilon") <= limit * (1 + 1e-9)).sort("mean@10", descending=True)
        noisy = within.filter(pl.col("experiment").str.ends_with("gaussian-popularity"))["mean@10"][0]
        match = re.search(r"(\S+) ([\d.]+)(?: ± [\d.]+)? (\d+) %, (\S+), ≥", text)
        assert match is not None, text
        system, utility, share, gain = match.groups()
        assert (system, utility) == (within["experiment"][0].removeprefix(f"{suite}-"), number(within["mean@10"][0]))
        assert share == number(100 * within["mean@10"][0] / ceiling, 0)
        assert float(gain.replace("−", "-")) == pytest.approx(within["mean@10"][0] - noisy, abs=6e-4)
    best = max(number(row["mean@10"]) for row in private.filter(setting="base").to_dicts())
    cost = number(float(number(ceiling)) - float(best))
    (section,) = re.findall(r'(?s)<section id="cost">.*?</section>', shipped["index.html"])
    (part,) = [part for part in section.split("<figure") if f"leaderboards/{suite}.html" in part]
    assert f": NDCG@10 {best}" in text_of(part)
    assert f"{number(ceiling)}; privacy costs {cost}, " in text_of(part)
    row = next(
        row for row in cells(shipped["leaderboards.html"], "table-data-sets").values() if row[0].startswith(suite)
    )
    assert row[-1].split()[0] == number(ceiling)
    assert row[6].split()[0] == best


def test_synthetic_data_are_labelled_wherever_their_numbers_stand(files: dict[str, str]) -> None:
    for file in ("leaderboards/demo.html", "suites/demo/index.html", "cards/demo/demo-dpae.html"):
        assert "SYNTHETIC" in text_of(files[file]), file
    for row in cells(files["leaderboards.html"], "table-data-sets").values():
        assert (row[2] == "SYNTHETIC") == row[0].startswith("demo"), row


def test_charts_of_the_index_are_of_real_data(files: dict[str, str]) -> None:
    (section,) = re.findall(r'(?s)<section id="cost">.*?</section>', files["index.html"])
    names = re.findall(r'<h3><a href="leaderboards/([^"]+)\.html">', section)
    assert names == ["ml-100k", "dpvae-ml-1m"]
    assert section.count('role="img"') == 3  # and users


def test_every_compared_system_has_a_card_of_the_schema(files: dict[str, str], made: list[site.Made]) -> None:
    wanted = {(of.facts.suite, system.experiment) for of in made for system in of.facts.compared}
    known = {(PurePosixPath(file).parent.name, PurePosixPath(file).stem) for file in files if file.endswith(".json")}
    assert known == wanted
    rules = Draft202012Validator(json.loads(schema()))
    for suite, experiment in wanted:
        text = files[f"cards/{suite}/{experiment}.json"]
        rules.validate(json.loads(text))
        assert Card.model_validate_json(text).model_dump_json(indent=1) + "\n" == text


def test_reading_and_drawing_a_suite_loads_nothing_heavy() -> None:
    """But for what all releases spend together: the accountant's own library loads scipy.stats."""
    code = (
        "import sys; from tasks.pages import page, site, suite; from tasks.stages import report\n"
        "results = report.results_of('membership')\n"
        "[page.render(of) for of in suite.pages(results, report.paper_of(results))]\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python(code).strip() == "[]"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the results of the demo alone."""
    root = Path.cwd()
    (tmp_path / "data/results").mkdir(parents=True)
    (tmp_path / "data/results/demo").symlink_to(root / "data/results/demo")
    (tmp_path / "data/reference").symlink_to(root / "data/reference")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/audit.md").write_text("# Audit\n\nWhat it is.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_site_is_written_whole_and_replaces_nothing_but_a_site(project: Path) -> None:
    (project / "mine").mkdir()
    (project / "mine/file").touch()
    with pytest.raises(ConfigurationError, match="no site"):
        stage.write(project / "mine", 1)
    (project / "site").mkdir()
    for file in (stage.SCHEMA, "old.html"):
        (project / "site" / file).touch()
    assert stage.write(project / "site", 1) == 1
    assert not (project / "site/old.html").exists()
    written = ("index.html", "docs/audit.html", "docs/api-dprec-metrics.html", "suites/demo/index.html", stage.SCHEMA)
    for file in written:
        assert (project / "site" / file).is_file(), file


def test_a_report_stands_alone(project: Path) -> None:
    report.draw("demo", Path("data/reports/demo"))
    pages = {path.name: path.read_text() for path in (project / "data/reports/demo").iterdir()}
    for name, text in pages.items():
        for link in map(unescape, re.findall(r'\bhref="([^"]+)"', text)):
            if not link.startswith(("data:", "http", "#")):
                assert link.partition("#")[0] in pages, (name, link)


@pytest.fixture(scope="module")
def pages(files: dict[str, str]) -> dict[str, str]:
    return {file: text for file, text in files.items() if file.startswith("docs/")}


def test_a_document_is_headed_once_and_its_parts_have_names_of_their_own(pages: dict[str, str]) -> None:
    for file, text in pages.items():
        assert len(re.findall(r"<h1>", text)) == 1, file
        assert "<pre>" not in text, "what may scroll is reached by keyboard"
    assert [part.anchor for part in documents.parts("# A\n\n## Gain\n\n## gain\n")] == ["a", "gain", "gain-1"]


def test_links_to_files_that_no_site_has_become_text() -> None:
    text = "# A\n\nSee [the *code*](../tasks/a.py), [b](b.md#c), [x](x.md) and [all](https://example.org/x).\n"
    (part,) = documents.parts(text, ["b"])
    assert part.text == "See the code, b, x and all."
    assert re.findall(r'href="([^"]+)"', str(part.html)) == ["b.html#c", "https://example.org/x"]
    assert "See the <em>code</em>, " in str(part.html)


def test_html_and_pictures_of_documents_are_not_shown() -> None:
    (part,) = documents.parts("# A\n\n<b>x</b> ![a](b.png)\n\n<script>y</script>\n")
    assert "<b>" not in part.html
    assert "<script" not in part.html
    assert "<img" not in part.html
    assert "&lt;script&gt;y" in part.html


def test_every_name_of_the_library_has_its_docstring_on_a_page(pages: dict[str, str]) -> None:
    for module in ("accounting", "attacks", "audits", "mechanisms", "metrics"):
        names = importlib.import_module(f"dprec.{module}")
        html = pages[f"docs/api-dprec-{module}.html"]
        text = re.sub(r"[`*]|<[^>]+>", "", unescape(re.sub(r"<[^>]+>", "", html)))
        for name in names.__all__:
            assert f'id="{name.lower()}"' in html
            (first, *_) = (inspect.getdoc(getattr(names, name)) or "").splitlines()
            assert re.sub(r"[`*]", "", first)[:40] in text, name
    assert 'href="api-dprec-metrics.html"' in pages["docs/api-dprec.html"]


def test_every_section_is_found_in_the_list(pages: dict[str, str]) -> None:
    html = pages[documents.INDEX]
    for name, text in DOCUMENTS.items():
        for title in re.findall(r"^## (.*)$", text, re.MULTILINE):
            plain = documents.parts(f"## {title}\n")[0].title
            assert plain in unescape(html), (name, title)
