"""Rows are written out as loops over the same names would."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import UndefinedError

from tasks.results.rows import define, expand

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
