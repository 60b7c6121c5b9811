"""Every pair whose order is reversed has one reason or is not decided, and no reason covers more than it shows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import polars as pl
import pytest
from markupsafe import escape

from tasks.config.params import load
from tasks.papers import PAPERS
from tasks.reporting import reversals, site
from tasks.reporting.core import differences
from tasks.reporting.core.differences import PART, UNDECIDED, UNSHOWN, Pair, is_row
from tasks.reporting.core.results import Results, System
from tasks.reporting.documents import parts
from tasks.reporting.sections import differences as section
from tasks.results.claims import KINDS, Claim, Reading, Reason
from tasks.stages.report import report_of
from tests.reporting import made, shown
from tests.reporting.committed import ROOT, drawn, read

SUITES = sorted(path.parent.name for path in (ROOT / "data/results").glob("*/results.json"))
HIT = "sampled-100/hit"
NOISE = "In general PrivSR (ε = 0.1) outperforms MF, whatever share of ratings is sensitive"
PRINTED = {"BPR": 0.3, "GCN": 0.4, "Blurm": 0.1}
"""Made-up printed Hit@5."""
OURS = {"bpr": (0.50, 0.51, 0.52), "gcn": (0.41, 0.40, 0.42), "blurm": (0.45, 0.36, 0.44)}
"""Ours by seed: BPR is above GCN at each, and Blurm above it at two of three."""


def results(
    ours: Mapping[str, tuple[float, ...]] = OURS,
    printed: Mapping[str, float] = PRINTED,
    *,
    other: tuple[tuple[str, str, str, tuple[float, ...]], ...] = (),
) -> Results:
    """A suite of made-up numbers of one printed column; other: (system, setting, metric, values by seed) besides."""
    systems = tuple(
        System(f"gerai-{name}", name, name, made.HERE, (0, 1, 2), {"config": {}}, {}, {}, ())
        for name in {**ours, **{name: () for name, *_ in other}}
    )
    given = made.shell("gerai", "gerai-ml-100k", systems)
    known = {system.label: system for system in given["systems"]}
    rows = [(name, "base", HIT, values) for name, values in ours.items()] + [*other]
    frames = [
        made.metrics("gerai", known[name], [(setting, metric, 5, seed, value) for seed, value in enumerate(values)])
        for name, setting, metric, values in rows
        if values
    ]
    numbers = [("gerai", "table3", "gerai-ml-100k", name, "", "hit@5", value, None) for name, value in printed.items()]
    table = pl.DataFrame(numbers, schema=given["published"].schema, orient="row")
    return shown.results(given | {"metrics": pl.concat(frames), "published": table})


def reason(name: str = "made up", **changes: object) -> Reason:
    return Reason(**{"name": name, "kind": "protocol unstated", "evidence": "", "sources": ()} | changes)  # type: ignore[arg-type]


@cache
def committed(suite: str) -> list[Pair]:
    """The pairs of a suite's committed results."""
    of, report, _ = read(suite)
    return differences.pairs(of, report.differences)


def contradictions(suite: str) -> tuple[Results, list[Claim], tuple[Reason, ...]]:
    """What `differences.contradicted` reads of a suite's committed results."""
    of, report, claims = read(suite)
    return of, claims, report.differences


def kinds(every: list[Pair]) -> dict[str, str]:
    return {pair.name: pair.kind for pair in differences.reversed_pairs(every)}


def test_a_pair_is_reversed_where_our_means_say_so_and_shown_where_seeds_do() -> None:
    every = differences.pairs(results(), ())
    assert {pair.name: pair.order for pair in every} == {
        "GCN before BPR": "reversed",
        "GCN before Blurm": "reversed",
        "BPR before Blurm": "as printed",
    }
    assert {pair.name for pair in every if pair.shown} == {"GCN before BPR"}, "0.45, 0.36, 0.44 is not shown above GCN"
    assert differences.counts(every) == {"pairs": 3, "reversed": 2, UNDECIDED: 2, UNSHOWN: 1}


def test_less_is_better_of_what_attackers_gain() -> None:
    """F1 of an attack: print has the lower one as the better."""
    of = results()
    harm = of.layout.tables[0].parts[0].columns[0]
    assert harm.better == "lower"
    turned = of.metrics.with_columns(metric=pl.lit(harm.metric))
    of = replace(
        of,
        metrics=turned,
        published=of.published.with_columns(artefact=pl.lit("table2"), metric=pl.lit(harm.published)),
    )
    every = differences.pairs(of, ())
    assert {pair.name: pair.order for pair in every}["BPR before GCN"] == "reversed"
    assert {pair.name for pair in every if pair.shown} == {"BPR before GCN"}


def test_what_is_printed_as_equal_is_no_pair_and_what_is_equal_here_is_not_reversed() -> None:
    assert [pair.name for pair in differences.pairs(results(printed={"BPR": 0.3, "GCN": 0.3}), ())] == []
    same = results({"bpr": (0.5, 0.5, 0.5), "gcn": (0.5, 0.5, 0.5)}, {"BPR": 0.3, "GCN": 0.4})
    (pair,) = differences.pairs(same, ())
    assert (pair.order, pair.shown) == ("equal", False)


def test_a_single_run_and_runs_without_randomness_show_nothing() -> None:
    for ours in ({"bpr": (0.5,), "gcn": (0.4,)}, {"bpr": (0.5, 0.5, 0.5), "gcn": (0.4, 0.4, 0.4)}):
        (pair,) = differences.pairs(results(ours, {"BPR": 0.3, "GCN": 0.4}), ())
        assert (pair.order, pair.shown) == ("reversed", False)


def test_the_first_reason_that_covers_a_pair_counts_and_none_is_not_decided() -> None:
    every = differences.pairs(
        results(),
        (
            reason("of Blurm", rows=("Blurm",), kind="their code differs from their text"),
            reason("of all", better=("GCN",)),
        ),
    )
    assert {pair.name: pair.reason.name for pair in every if pair.reason} == {
        "GCN before BPR": "of all",
        "GCN before Blurm": "of Blurm",
    }
    for narrow in (
        reason(better=("BPR",)),
        reason(better=("GCN",), not_worse=("BPR", "Blurm")),
        reason(rows=("RAP",)),
        reason(tables=("table2",)),
        reason(metrics=("ndcg@",)),
    ):
        assert set(kinds(differences.pairs(results(), (narrow,))).values()) == {UNDECIDED}


def test_that_data_are_a_part_is_a_reason_on_a_part_alone() -> None:
    part = (reason(kind=PART),)
    assert set(kinds(differences.pairs(results(), part)).values()) == {UNDECIDED}
    half = replace(results(), stands_for="ml-100k")
    assert set(kinds(differences.pairs(half, part)).values()) == {PART}


def test_a_reading_covers_what_it_is_shown_to_order_as_printed() -> None:
    offered = (reason(reading=Reading(settings={"Blurm": "added=offered"})),)
    for values, covered in (
        ((0.10, 0.11, 0.09), {"GCN before Blurm"}),
        ((0.30, 0.39, 0.45), set()),  # below GCN in the mean, which three seeds do not show
        ((0.50, 0.50, 0.51), set()),
        ((), set()),
    ):
        of = results(other=(("blurm", "added=offered", HIT, values),))
        assert {pair.name for pair in differences.pairs(of, offered) if pair.reason} == covered
    full = tuple(
        (name, "base", "full/hit", values)
        for name, values in {"bpr": (0.1, 0.11, 0.1), "gcn": (0.2, 0.22, 0.2)}.items()
    )
    of = results(other=full)
    assert kinds(differences.pairs(of, (reason(reading=Reading(metric=("sampled-100/", "full/"))),))) == {
        "GCN before BPR": "protocol unstated",
        "GCN before Blurm": UNDECIDED,
    }


def test_a_system_in_place_of_another_is_waited_for_until_it_has_results() -> None:
    instead = reason(reading=Reading(metric=("sampled", "tested"), metric_rows=("GCN",), systems={"GCN": "as-coded"}))
    assert differences.absent(results(), instead) == ["as-coded"]
    assert set(kinds(differences.pairs(results(), (instead,))).values()) == {UNDECIDED}
    of = results(other=(("as-coded", "base", "tested-100/hit", (0.60, 0.62, 0.61)),))
    assert differences.absent(of, instead) == []
    assert set(kinds(differences.pairs(of, (instead,))).values()) == {"protocol unstated"}


def test_a_reading_that_turns_many_pairs_is_corrected_for_all_of_them() -> None:
    """0.45 of four pairs: p = 0.03 alone, and 0.12 of four."""
    first = (0.45, 0.46, 0.442, 0.455, 0.45)
    second = (0.40, 0.46, 0.41, 0.43, 0.442)
    others = ("rap", "gcn", "dpne", "dpmf")
    ours = {"bpr": (0.1, 0.1, 0.1, 0.1, 0.11), **dict.fromkeys(others, (0.5, 0.5, 0.5, 0.5, 0.51))}
    names = {"rap": "RAP", "gcn": "GCN", "dpne": "DPNE", "dpmf": "DPMF"}
    full = (("bpr", "base", "full/hit", first), *((name, "base", "full/hit", second) for name in others))
    everything = reason(reading=Reading(metric=("sampled-100/", "full/")))
    alone = results({n: ours[n] for n in ("bpr", "gcn")}, {"BPR": 0.9, "GCN": 0.1}, other=(*full[:1], full[2]))
    assert set(kinds(differences.pairs(alone, (everything,))).values()) == {"protocol unstated"}
    of = results(ours, {"BPR": 0.9} | dict.fromkeys(names.values(), 0.1), other=full)
    assert set(kinds(differences.pairs(of, (everything,))).values()) == {UNDECIDED}


def test_a_reading_that_reverses_as_many_pairs_as_it_turns_decides_nothing() -> None:
    """Among all items GCN is above BPR, as printed; but RAP is above DPNE, and was below it, as printed."""
    ours = {"bpr": (0.5,) * 3, "gcn": (0.45,) * 3, "dpne": (0.2,) * 3, "rap": (0.1,) * 3}
    printed = {"GCN": 0.4, "BPR": 0.3, "DPNE": 0.2, "RAP": 0.1}
    turned = (("gcn", "base", "full/hit", (0.6, 0.61, 0.6)), ("bpr", "base", "full/hit", (0.5, 0.5, 0.51)))
    broken = (("rap", "base", "full/hit", (0.4, 0.41, 0.4)), ("dpne", "base", "full/hit", (0.3, 0.3, 0.31)))
    full = reason(reading=Reading(metric=("sampled-100/", "full/")))
    for other, kind, counted in ((turned, "protocol unstated", (1, 0)), (turned + broken, UNDECIDED, (1, 1))):
        of = results(ours, printed, other=other)
        (weighed,) = differences.weighed(of, (full,))
        assert (weighed.turned, weighed.broken, weighed.kind) == (*counted, kind)
        (pair,) = differences.reversed_pairs(differences.pairs(of, (full,)))
        assert (pair.kind, pair.reason) == (kind, weighed)
        text = str(section.section(of, replace(report_of("gerai"), differences=(full,))).blocks)
        assert f"it turns {counted[0]} to the printed order and reverses {counted[1]}" in text


def test_replicas_and_suites_of_no_paper_have_no_pairs(demo: Results) -> None:
    for of in (replace(results(), synthetic=True), replace(results(), paper=None), demo):
        assert differences.pairs(of, ()) == []
        assert section.section(of, report_of(of.paper)).blocks == []


@pytest.mark.parametrize("suite", SUITES)
def test_every_reversed_pair_of_committed_results_has_a_reason_and_exactly_one_kind(suite: str) -> None:
    of, report, _ = read(suite)
    every = committed(suite)
    numbers = differences.counts(every)
    assert sum(numbers[kind] for kind in KINDS) == numbers["reversed"] >= numbers[UNSHOWN]
    assert not every or not of.synthetic
    assert [pair.name for pair in differences.reversed_pairs(every) if pair.reason is None] == []
    assert [claim.claim for claim, why in differences.contradicted(*contradictions(suite)).items() if why is None] == []
    assert all(pair.reason is None for pair in every if pair.order != "reversed")
    names = [(p.table.key, p.column.data, p.column.published, p.column.setting, p.name) for p in every]
    assert len(names) == len({*names}), "a pair of a printed column counts once, whatever scores of it there are"
    blocks = section.section(of, report).blocks
    if every:
        shown_pairs = [row for fold in blocks[-1] for row in fold.content[1].rows]  # type: ignore[union-attr]
        assert sum(int(row.cells[1].text) for row in shown_pairs) == numbers["reversed"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_reason_covers_a_pair_waits_for_a_system_or_was_measured(paper: str) -> None:
    """... and what it waits for is a system of the suite. What was measured may turn no pair: its page says so."""
    suites = [read(suite)[0] for suite in SUITES]
    mine = [of for of in suites if of.paper == paper and not of.synthetic]
    for given in report_of(paper).differences:
        covered, waiting = 0, set[str]()
        for of in mine:
            every = committed(of.suite)
            covered += sum(pair.reason is not None and pair.reason.name == given.name for pair in every)
            covered += [*differences.contradicted(*contradictions(of.suite)).values()].count(given)
            labels = {
                name.removeprefix(f"{of.suite}-") for name in load(ROOT / "params.yaml").suites[of.suite].experiments
            }
            waiting |= {*differences.absent(of, given)} if every else set()
            assert not every or {*differences.absent(of, given)} <= labels, "what no suite runs is not waited for"
        assert covered or waiting or given.reading is not None, given.name
        assert covered or waiting or "pairs are ordered as printed" not in given.evidence, "of no pair"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_reason_says_where_its_evidence_is(paper: str) -> None:
    for given in report_of(paper).differences:
        assert given.sources
        assert 2 <= given.evidence.count(". ") + given.evidence.endswith(".") + 1 <= 5
        for source in given.sources:
            page, _, anchor = source.partition("#")
            path, _, test = source.partition("::")
            if page.endswith(".md"):
                assert anchor in {part.anchor for part in parts((ROOT / page).read_text(encoding="utf-8"))}, source
            else:
                assert f"def {test}" in (ROOT / path).read_text(encoding="utf-8"), source


def test_the_noise_of_dp_vae_leaves_nothing_to_learn() -> None:
    """Its length beside the longest that all clipped gradients of a step can have together, and what runs come to.

    σ = √(2 log(1.25 / δ)) S / ε in each of l numbers for each of U users, against U gradients of length S.
    """

    def ratio(numbers: int, users: int) -> float:
        return math.sqrt(2 * math.log(1.25 / 0.001)) * math.sqrt(numbers) / math.sqrt(users)

    of = read("dpvae")[0]
    assert ratio(275_802, 10) == pytest.approx(627, abs=1)
    items = 1_682
    for label, numbers in (("svd", 100 * items), ("mf", 21 * items)):
        system = of.find(label)
        assert system is not None
        assert system.config["delta"] == 0.001
        assert ratio(numbers, system.config["batch_size"]) > 99
    noisy = report_of("dpvae").differences[0].better
    covered = [p for p in committed("dpvae") if p.reason and p.reason.better == p.reason.not_worse == noisy]
    assert {pair.kind for pair in covered} == {UNDECIDED}, "of noise that is smaller no run shows the printed order"
    ours, popularity = of.find("dpvae"), of.find("popularity")
    assert ours is not None
    assert popularity is not None
    less = of.values(ours, "full/ndcg", 100, "epsilon_max=8.0")
    assert less.mean() < 0.2 * of.values(popularity, "full/ndcg", 100).mean(), "nor with an eighth of the noise"
    assert all(is_row(pair.better.method.name, noisy) for pair in covered)
    assert not any(is_row(pair.worse.method.name, noisy) for pair in covered), "noise of both explains no order"
    with_noise = [p for p in committed("dpvae") if p.order == "reversed" and is_row(p.worse.method.name, noisy)]
    assert {pair.kind for pair in with_noise} == {UNDECIDED}
    for pair in covered:
        assert pair.better.printed is not None
        assert pair.better.printed > 3 * float(pair.better.ours.mean()), pair.name


def test_most_printed_differences_of_few_users_are_below_their_standard_error() -> None:
    of = read("gerai")[0]
    few = [p for p in committed("gerai") if p.reason and p.reason.metrics == ("f1_",)]
    blurm = [p for p in committed("gerai") if p.reason and p.reason.metrics == ("f1_gender",)]
    assert {p.better.method.name for p in blurm} == {"Blurm"}
    assert all(p.shown for p in blurm), "Blurm's gender is no guess about few users"
    error = 0.5 / math.sqrt(of.n_targets or 0)
    assert sum(abs(pair.printed) < error for pair in few) > len(few) / 2
    assert error == pytest.approx(0.036, abs=0.001)


def test_each_paper_has_a_page_that_its_suites_and_the_index_lead_to() -> None:
    suites = [drawn("dpvae"), drawn("privsr")]
    documents = {"choices-dpvae": (ROOT / "docs/choices-dpvae.md").read_text(encoding="utf-8")}
    pages = site.pages(suites, [], documents)
    assert {"why-dpvae.html", "why-privsr.html"} == {file for file in pages if file.startswith("why-")}
    for suite in suites:
        address = f"why-{suite.report.paper}.html"
        assert f'href="../../{address}"' in suite.page
        assert f'href="{address}"' in pages["index.html"]
        assert f'href="suites/{suite.report.suite}/index.html"' in pages[address]
    page = pages["why-dpvae.html"]
    assert "Why we differ: DP-VAE" in page
    assert 'href="docs/choices-dpvae.html#what-dp-vae-leaves-open"' in page
    assert pages["why-privsr.html"].count(NOISE) == 1
    for given in report_of("dpvae").differences:
        assert given.name in page


def test_contradicted_claims_stand_in_place_of_pairs_where_no_number_is_printed() -> None:
    of, report, claims = read("privsr")
    wrong = differences.contradicted(of, claims, report.differences)
    assert {claim.claim for claim in wrong} == {claim.claim for claim in claims if claim.verdict == "contradicted"}
    covered = {claim.claim.partition(" (read as")[0]: why.name for claim, why in wrong.items() if why is not None}
    assert covered[NOISE] == report.differences[0].name
    assert len(covered) >= 4
    text = str(section.section(of, report, claims).blocks)
    for said in (  # computed from results
        "a third of the printed step PrivSR is better than MF: contradicted. MAE: PrivSR (γ = 0.00003) 0.788, MF 0.752",
        "Without noise PrivSR is better than MF: supported. MAE: nonoise 0.747, MF 0.752",
        "PrivSR at ε = 0.05 ends before DPMF at 0.1: not decided. iterations: PrivSR (x = 0.1, ε = 0.05) 180,",
    ):
        assert said in text
    for other in ("dpvae", "privsr"):
        of, report, claims = read(other)
        assert differences.contradicted(replace(of, synthetic=True), claims, report.differences) == {}
    assert differences.contradicted(*contradictions("dpvae")) == {}, "pairs are printed"


def test_what_stands_above_the_pairs_or_claims_stands_there_once() -> None:
    suite, said = drawn("privsr"), escape(section.IN_WORDS)
    pages = site.pages([suite], [], {})
    assert suite.page.count(said) == pages["why-privsr.html"].count(said) == 1
    known = reversals.difference(*read("privsr"))
    assert known is not None
    ((_, _, sections),) = reversals.pages([replace(known, reasons=())], ()).values()
    assert [(of.anchor, of.about) for of in sections] == [("pairs-privsr", f"<p>{said}</p>")], "without known reasons"


def test_where_nothing_is_printed_of_the_data_contradicted_claims_are_counted() -> None:
    known = reversals.difference(*read("dpvae-ml-1m"))
    assert known is not None
    assert not known.counts["pairs"]
    wrong = sum(claim.verdict == "contradicted" for claim in read("dpvae-ml-1m")[2])
    for of, said in (
        (known, f"contradict {wrong}; they stand in its report."),
        (replace(known, contradicted=0), "our numbers contradict none."),
    ):
        ((_, _, sections),) = reversals.pages([of], ()).values()
        assert said in str(sections[-1].blocks)
    assert wrong


def test_replicas_are_named_and_enter_nothing() -> None:
    collected = [reversals.difference(*read(suite)[:2]) for suite in ("dpvae", "dpvae-netflix-twin")]
    known = [of for of in collected if of is not None]
    assert [of.synthetic for of in known] == [False, True]
    assert known[1].counts == Counter()
    ((_, _, sections),) = reversals.pages(known, ()).values()
    assert [of.anchor for of in sections] == ["reasons", "pairs-dpvae", "replicas"]
    assert "dpvae-netflix-twin" in str(sections[-1].blocks)
    assert reversals.pages(known[1:], ()) == {}
    table = reversals.overview(known)
    assert table is not None
    assert [row.cells[1].text for row in table.rows] == ["214"]


def test_texts_of_reasons_are_escaped() -> None:
    hostile = reason("<b>", evidence="<script>alert(1)</script>", sources=("docs/choices-gerai.md#x",))
    of = reversals.difference(results(), replace(report_of("gerai"), differences=(hostile,)))
    assert of is not None
    ((_, _, sections),) = reversals.pages([of], ("choices-gerai",)).values()
    text = str(sections[0].blocks)
    assert not re.search(r"<script|<b>", text)
    assert 'href="docs/choices-gerai.html#x"' in text
