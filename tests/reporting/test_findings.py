"""Numbers of the findings' tables in docs/choices-*.md: those of the committed results, rounded to three places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data/results"
Rows = Iterator[tuple[list[str], list[str]]]
"""The numbers of a row as it is printed, and as they are in the results."""
NUMBER = re.compile(r"(?<![\d.])\d\.\d{3}(?!\d)")
RANKED = (("full/ndcg", "@100"), ("full/recall-reachable", "@20"), ("full/recall-reachable", "@50"))
NEXT = (("next/recall", "@20"), ("next/mrr", "@20"))
VECTORS = {
    "interests": "interests/micro-f1", "gender": "gender/micro-f1", "occupation": "occupation/micro-f1",
    "friends": "links/cosine/auc",
}  # fmt: skip
DPVAE = {
    "LightFM": ("lightfm", "base"), "AE": ("ae", "base"), "VAE, standard prior": ("vae", "prior=standard"),
    "VAE, users' priors": ("vae", "base"), "KNN": ("knn", "base"), "SVD": ("svd", "base"), "MF": ("mf", "base"),
    "popularity": ("popularity", "base"), "DPAE": ("dpae", "base"), "DP-VAE as published": ("dpvae", "base"),
    "DP-VAE, rigorous": ("dpvae-rigorous", "base"), "DPALS": ("dpals", "base"),
}  # fmt: skip
LISTED = {
    "VAE": ("vae", "base"), "DPMF as published": ("dpmf", "base"), "dpvae-compact": ("dpvae-compact", "base"),
    "dpvae-rigorous": ("dpvae-rigorous", "base"), "dp-popularity": ("dp-popularity", "base"),
}  # fmt: skip
CROSUE = {
    "as published (5, 10)": ("dp-rgcn", "base"), "as released (5, 5)": ("dp-rgcn-released", "base"),
    "rigorous (5, 10)": ("dp-rgcn-rigorous", "base"), "as published, ε_g = 5": ("dp-rgcn", "edges_epsilon=5.0"),
    "dp-rgcn, ε_g = 5": ("dp-rgcn", "edges_epsilon=5.0"), "dp-rgcn (5, 10)": ("dp-rgcn", "base"),
    "dp-rgcn-rigorous (5, 10)": ("dp-rgcn-rigorous", "base"), "degree, one number": ("degree", "base"),
    "deepwalk, trained": ("deepwalk", "base"), "netmf, closed form": ("netmf", "base"),
}  # fmt: skip


@cache
def _metrics(suite: str) -> pl.DataFrame:
    return pl.read_csv(RESULTS / suite / "metrics.csv", infer_schema=False)


def value(suite: str, system: str, setting: str, metric: str, column: str = "mean") -> str:
    row = _metrics(suite).row(
        by_predicate=(pl.col("experiment") == f"{suite}-{system}")
        & (pl.col("setting") == setting)
        & (pl.col("metric") == metric),
        named=True,
    )
    return f"{float(row[column]):.3f}"


def table(document: str, header: str, place: int = 1) -> Iterator[list[str]]:
    """The cells of each row below a header, without marks; place: which of the tables that begin so."""
    lines = (ROOT / "docs" / document).read_text(encoding="utf-8").split(f"\n{header}")[place].splitlines()[2:]
    for line in lines:
        if not line.startswith("|"):
            return
        yield [re.sub(r"[`*]", "", cell).strip() for cell in line.strip("|").split("|")]


def numbers(*cells: str) -> list[str]:
    return [number for cell in cells for number in NUMBER.findall(cell)]


def gerai() -> Rows:
    columns = [("sampled-100/hit", "mean@10"), ("sampled-100/hit", "std@10"), ("full/ndcg", "mean@10"),
               ("full/ndcg", "std@10")]  # fmt: skip
    for cells in table("choices-gerai.md", "| | Hit@10"):
        for system, *own in (cells[:3], cells[3:]):
            yield numbers(*own), [value("gerai", system, "base", *column) for column in columns]


def dpvae() -> Rows:
    for label, ours, _ in table("choices-dpvae.md", "| | ours | printed |"):
        name = re.sub(r" \(.*|, ε.*", "", label)
        system, setting = DPVAE[name]
        settings = [setting, *(["unobserved=0.1"] if "unobserved" in label else [])]
        yield (
            numbers(ours),
            [value("dpvae", system, each, metric, f"mean{k}") for each in settings for metric, k in RANKED],
        )


def other_movielens() -> Rows:
    """What paragraphs say of two suites that the paper prints nothing of: a name, then its NDCG@100."""
    text = " ".join((ROOT / "docs/choices-dpvae.md").read_text(encoding="utf-8").split())
    for suite, start in (("dpvae-ml-1m", "On **MovieLens 1M**"), ("dpvae-ml-latest-small", "On **MovieLens Latest")):
        paragraph = text.partition(start)[2].partition(" * **")[0]
        for name, (system, _) in {**DPVAE, **LISTED}.items():
            for said in re.findall(rf"(?<![\w-]){re.escape(name)}`? (0\.\d{{3}})", paragraph)[:1]:
                yield [said], [value(suite, system, "base", "full/ndcg", "mean@100")]


def dipsgnn() -> Rows:
    for label, half, _, small in table("choices-dipsgnn.md", "| | MovieLens 1M, half"):
        systems = re.findall(r"[a-z][a-z-]*", label.partition(" (")[0].partition(" at ")[0])
        setting = "steps=0" if "T = 0" in label else "base"
        metrics = [(metric, f"mean{k}") for metric, k in NEXT]
        if "authors" in label:
            metrics += [(f"chosen-on-test/{metric}", k) for metric, k in metrics]
        for suite, cell in (("dipsgnn-ml-1m", half), ("dipsgnn", small)):
            if cell == "–":
                continue
            each = [[value(suite, system, setting, *metric) for metric in metrics] for system in systems]
            recalls, both = [own[0] for own in each], each[0][1:]
            yield numbers(cell), recalls + both


def crosue() -> Rows:
    columns = tuple(VECTORS.values())
    for header in ("| | interests | gender |", "| system | interests | gender | occupation"):
        for label, *cells in table("choices-dpcrosue.md", header):
            if label.startswith(("printed", "every interest")):
                continue
            system, setting = CROSUE.get(label, (label, "base"))
            expected = [value("dpcrosue", system, setting, f"foursquare/{metric}") for metric in columns]
            if system == "degree":
                expected.append(value("dpcrosue", system, setting, "foursquare/links/dot/auc"))
            yield numbers(*cells), expected


def replicas() -> Rows:
    """Of two replicas the first network of one, then of the other; of each the true system and the private one."""
    networks = (("dpcrosue-weibo-twin", "weibo1"), ("dpcrosue-foursquare-twitter-twin", "foursquare"))
    for label, *cells in table("choices-dpcrosue.md", "| system | interests | gender | friends"):
        systems = re.findall(r"[a-z][a-z0-9-]+", label.partition(" (")[0])
        if label.startswith("every interest"):
            continue
        for kind, cell in zip(("interests", "gender", "friends"), cells, strict=True):
            yield (
                numbers(cell),
                [
                    value(suite, system, "base", f"{network}/{VECTORS[kind]}")
                    for suite, network in networks
                    for system in systems
                ],
            )


def privsr() -> Rows:
    for place, suite in enumerate(("privsr", "privsr-yelp-hin", "privsr-epinions"), start=1):
        attacks = pl.read_parquet(RESULTS / suite / "attacks.parquet").filter(pl.col("setting") == "base")
        for cells in table("choices-privsr.md", "| system | MAE | attacker", place):
            for label, error, attacker in (cells[:3], cells[3:]):
                systems = re.sub(r" \(.*", "", label).split(", ")
                first = [value(suite, systems[0], "base", "mae", each) for each in ("mean", "std")]
                assert all(float(value(suite, each, "base", "mae")) == float(first[0]) for each in systems), label
                yield numbers(error), first
                if attacker != "–":
                    of = [attacks.filter(pl.col("experiment") == f"{suite}-{system}")["mae"] for system in systems]
                    yield numbers(attacker), list(dict.fromkeys(f"{each.min():.3f}" for each in of))


@pytest.mark.parametrize("rows", [gerai, dpvae, other_movielens, dipsgnn, crosue, replicas, privsr])
def test_tables_of_findings_have_the_numbers_of_the_committed_results(rows: Callable[[], Rows]) -> None:
    pairs = list(rows())
    assert len(pairs) > 5
    assert [said for said, _ in pairs] == [expected for _, expected in pairs]
