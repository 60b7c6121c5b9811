"""Entries of params.yaml about networks: what no key says alone."""

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.config.networks import Alignment
from tests.stages.tiny_pair import ENTRY

ATTRIBUTES = {"of": "processed/pair", "ways": ["attributes"], "anchor_shares": [], "anchors": "attributes"}


def test_ways_have_the_names_of_their_metrics() -> None:
    options = Alignment.model_validate(ENTRY | {"anchor_shares": [0.01, 0.05, 0.07, 0.5]})
    named = ["anchors-1%", "anchors-5%", "anchors-7%", "anchors-50%"]
    assert options.all_ways == ["adversarial", "attributes", "attribute-start", *named]
    assert options.shares["anchors-7%"] == 0.07


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ways": ["attributes", "attributes"]}, "attributes is repeated"),
        ({"ways": ["guess"]}, "'adversarial'"),
        ({"anchors": "anchors-5%"}, "'truth'"),
        ({"ways": ["adversarial"]}, "anchors: 'attribute-start' is not among the ways"),
        ({"ways": [], "anchor_shares": []}, "there is nothing to do"),
        ({"of": "words/pair"}, "of"),
        ({"anchor_shares": [0.61]}, "0.61 and test_share are more than all anchors"),
        ({"anchor_shares": [0.1, 0.1 + 1e-12]}, "two have one name"),
        ({"test_share": 1.0}, "test_share"),
        ({"k": []}, "k"),
        ({"seeds": [1, 1]}, "1 is repeated"),
    ],
)
def test_an_alignment_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Alignment.model_validate(ENTRY | changes)


def test_attributes_alone_and_all_anchors_but_those_that_judge_are_fine() -> None:
    assert Alignment.model_validate(ENTRY | ATTRIBUTES).all_ways == ["attributes"]
    turned = Alignment.model_validate(ENTRY | {"of": "processed/pair", "ways": ["adversarial"], "anchors": "truth"})
    assert turned.reads_attributes
    assert turned.embeddings is None
    assert Alignment.model_validate(ENTRY | {"anchor_shares": [0.8], "test_share": 0.2}).shares == {"anchors-80%": 0.8}
