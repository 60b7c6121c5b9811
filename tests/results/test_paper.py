"""A paper.yaml that is wrong is refused in one line; rows are written out as loops, those of claims as tests."""

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jinja2 import UndefinedError

from tasks.config.tasks import resolve
from tasks.core.errors import ConfigurationError
from tasks.papers import PAPERS
from tasks.pipeline.papers import named_functions
from tasks.results.claims import Order, Readings, Trend
from tasks.results.paper import Paper, load
from tasks.results.rows import define, expand
from tests.parameters import ROOT

TOY = (ROOT / "tests/additions/tasks/papers/toy/paper.yaml").read_text(encoding="utf-8")


def paper(folder: Path, text: str = TOY) -> Paper:
    path = folder / "paper.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def with_claim(folder: Path, claim: str) -> Paper:
    given = yaml.safe_load(TOY) | {"claims": {"table2": [yaml.safe_load(claim)]}}
    return paper(folder, yaml.safe_dump(given))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("headline_k: 5", "headline_k: five", "headline_k"),
        ("headline_k: 5", "headline: 5", "headline"),
        ("better: higher", "better: more", "tables.0.parts.0.columns.0.better"),
        ("validation: NDCG\n", "", "validation"),
        ('label: "K = {k}"', 'label: "K = {l}"', "'l'"),
        ("open: [toy]", "open: [toy", "line "),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in TOY
    with pytest.raises(ConfigurationError) as error:
        paper(tmp_path, TOY.replace(old, new))
    assert "paper.yaml" in str(error.value)
    assert where in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "claim", ["{claim: A, better: B, than: C}", "{claim: A, key: epsilon, pairs: []}", "{claim: A}"]
)
def test_a_claim_without_a_test_of_its_own_is_refused(tmp_path: Path, claim: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{tmp_path.name}: claims: "):
        with_claim(tmp_path, claim).claim_rows({})


def test_better_and_than_are_all_pairs_and_readings_have_what_the_claim_has(tmp_path: Path) -> None:
    made = with_claim(
        tmp_path,
        """
        claim: All of A are better than all of B
        better: [A, {method: A, key: epsilon, value: 2}]
        than: [B, C]
        readings: [{each: {metric: [hit, ndcg]}, reading: "by {metric}"}, {each: {metric: [hit]}, reading: again}]
        measures: [{name: M, metric: "{metric}"}]
        """,
    )
    (claim,) = made.claim_rows({})
    assert isinstance(claim, Readings)
    assert [*claim.specs] == ["by hit", "by ndcg", "again"]
    for (reading, spec), metric in zip(claim.specs.items(), ("hit", "ndcg", "hit"), strict=True):
        assert isinstance(spec, Order), reading
        assert [(pair.better.value, pair.than.method) for pair in spec.pairs] == [*product((0.0, 2.0), "BC")]
        assert [measure.metric for measure in spec.measures] == [metric]


def test_a_row_with_a_key_is_a_trend(tmp_path: Path) -> None:
    claim = "{claim: A, key: epsilon, methods: [A], rises: true, at: {beta: 1}, measures: [{name: M, metric: m}]}"
    (trend,) = with_claim(tmp_path, claim).claim_rows({})
    assert isinstance(trend, Trend)
    assert (trend.at, trend.measures[0].ks) == ((("beta", 1.0),), (0,))


@pytest.mark.parametrize("key", PAPERS)
def test_all_functions_that_a_paper_names_are_there(key: str) -> None:
    assert all(callable(resolve(name)) for name in named_functions(key))


# Rows of YAML.


NETWORKS = [SimpleNamespace(name="a", sensitive=["x", "y"]), SimpleNamespace(name="b", sensitive=["y"])]


def test_each_is_a_loop_for_every_name_the_last_one_fastest() -> None:
    row = {"each": {"k": [5, 10], "metric label": {"hit": "Hit", "ndcg": "NDCG"}}, "text": "{label}@{k}", "k": "{k}"}
    expected = [{"text": f"{label}@{k}", "k": f"{k}"} for k, label in product((5, 10), ("Hit", "NDCG"))]
    assert expand([row], {}) == expected


def test_a_list_may_be_an_expression_in_the_names_above_it() -> None:
    row = {"each": {"network": "networks", "attribute": "network.sensitive"}, "metric": "{network.name}/{attribute}"}
    assert [made["metric"] for made in expand([row], {"networks": NETWORKS})] == ["a/x", "a/y", "b/y"]


@pytest.mark.parametrize(("when", "kept"), [("a != b", [1, 2]), ("a < b", [1]), (None, [1, 1, 2, 2]), ("gone", [])])
def test_a_row_stands_where_its_condition_holds(when: str | None, kept: list[int]) -> None:
    row = {"each": {"a": [1, 2], "b": [1, 2]}, "value": "{a}"} | ({"when": when} if when else {})
    assert expand([row], {"gone": None}) == [{"value": f"{a}"} for a in kept]


def test_a_row_may_stand_for_several_or_for_texts() -> None:
    rows = [{"each": {"n": [1, 2]}, "items": ["{n}", {"n": "{n}"}]}, "last"]
    assert expand(rows, {}) == ["1", {"n": "1"}, "2", {"n": "2"}, "last"]


def test_names_are_defined_one_after_another_unless_they_are_known() -> None:
    given: dict[str, Any] = {"networks": [{"name": "printed"}], "first": "(networks | list)[0]"}
    assert define(given, {"networks": ()})["first"].name == "printed"
    assert define(given, {"networks": tuple(NETWORKS)})["first"].name == "a"


@pytest.mark.parametrize(
    "row", [{"text": "{unknown}"}, {"each": {"k": "unknown"}, "text": ""}, {"when": "unknown", "text": ""}]
)
def test_an_unknown_name_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises((KeyError, UndefinedError), match="unknown"):
        expand([row], {})
