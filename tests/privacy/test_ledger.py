"""A ledger entry is silent about no missing guarantee or gap; no saved model holds a secret."""

import math
import re
from importlib import import_module

import numpy as np
import pytest
from pydantic import ValidationError

from tasks.core.contracts import Feature
from tasks.models.social.factorisation import SocialFactorisation
from tasks.models.training import EpochModel
from tasks.privacy.accounting import gaps
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import edges, multidimensional, words
from tasks.privacy.remarks import gap
from tests.models.contract import LISTS, RATINGS, SEQUENCES, quickly, trained
from tests.models.test_noise_streams import PRIVATE, case, model_of
from tests.parameters import ROOT

ENTRY = LedgerEntry(
    protects="feature",
    unit="features",
    neighbouring="replace",
    mechanism="piecewise",
    accounting="published",
    claimed_epsilon=20.0,
    claimed_delta=0.0,
    accounted_epsilon=0.1 + 0.2,
    accounted_delta=1e-5,
    gaps=(gap("fitted-ranges", columns="age"), gap("seed")),
    events=(Event(kind="pure-local", parameters={"epsilon": 2.5}, count=8),),
)


def test_no_guarantee_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="reason"):
        LedgerEntry.model_validate(ENTRY.model_dump() | {"accounted_epsilon": None})
    entry = LedgerEntry.model_validate(ENTRY.model_dump() | {"accounted_epsilon": None, "reasons": ["labels-read"]})
    assert entry.accounted_epsilon is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"accounted_epsilon": math.inf},
        {"claimed_epsilon": -1.0},
        {"claimed_epsilon": math.nan},
        {"accounted_delta": 1.0},
        {"protects": "everything"},
        {"unit": "everyone"},
        {"gaps": ["not one of the ids"]},
        {"note": "unknown field"},
    ],
)
def test_impossible_entries_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LedgerEntry.model_validate(ENTRY.model_dump() | wrong)


@pytest.mark.parametrize("name", sorted({*PRIVATE, *RATINGS}))
def test_every_finite_epsilon_names_what_it_does_not_cover(name: str) -> None:
    """An ε of 0 draws nothing; losses of what is published, which the next test is about, are no gap."""
    model = model_of(name).fit(case(name)[1], rng=np.random.default_rng(0))
    for entry in model.ledger():
        if entry.accounted_epsilon is None:
            continue
        assert ("epoch" in entry.given) == isinstance(model, EpochModel)
        needed = {*(gaps.BY_EPOCHS if isinstance(model, EpochModel) else gaps.ONCE)}
        needed -= {gaps.LOSSES} if isinstance(model, SocialFactorisation) else set()
        needed -= {gaps.SEED} if not entry.accounted_epsilon else set()
        if {event.kind for event in entry.events} & {"gaussian", "sampled-gaussian", "laplace"}:
            assert {gaps.FLOATS, gaps.DRAWN} & set(entry.gaps)
        assert needed <= set(entry.gaps)
        assert len(set(entry.gaps)) == len(entry.gaps)


def test_counts_and_hashes_are_named_of_every_release() -> None:
    """They stand in results and locks, without noise, whatever is released of the data."""
    number = Feature(name="age", kind="numeric", low=0, high=1)
    released = (
        *multidimensional.entries([number], 1.0, 1),
        edges.ledger(1.0, 0.1, "rigorous", 1),
        *words.ledger(1.0, 3, 1.0, "public", "rigorous", 1),
    )
    assert all(gaps.RECORDED in entry.gaps for entry in released)
    assert gaps.RECORDED in gaps.ONCE


def test_a_delta_means_little_above_one_in_all_users() -> None:
    assert gaps.large_delta(0.1, 10) == ()
    assert gaps.large_delta(0.11, 10) == (gap("large-delta", delta=0.11, n_users=10),)


def test_what_all_users_decide_is_a_condition_of_finite_lines_but_of_features() -> None:
    conditions = ("catalogue", "minimum-counts")
    count = quickly("dp-popularity").ledger()[0]
    assert gaps.prepared_entry(count, conditions).given == conditions
    validated = gaps.prepared_entry(count, conditions, validated=True)
    assert validated.given == ("configuration", *conditions)
    assert gap("configuration") in validated.gaps
    feature = multidimensional.entries([Feature(name="age", kind="numeric", low=0, high=1)], 1.0, 1)[0]
    assert gaps.prepared_entry(feature, conditions).given == feature.given
    with_metadata = count.model_copy(update={"protects": "feature", "unit": "user-with-metadata"})
    assert gaps.prepared_entry(with_metadata, conditions).given == conditions  # its features are those of the same step
    assert gap("catalogue-public") in gaps.prepared_entry(count, conditions).gaps
    listed = gaps.prepared_entry(count, ()).gaps
    assert gap("lists-public") in listed
    assert gap("catalogue-public") not in listed
    rating = quickly("dpmf-rigorous").ledger()[0]
    assert gaps.prepared_entry(rating, conditions).given == (*conditions, "parts")  # parts have shares of its user's
    infinite = count.model_copy(update={"accounted_epsilon": None})
    assert gaps.prepared_entry(infinite, conditions) == infinite


@pytest.mark.parametrize("conditions", [("catalogue",), ("catalogue", "no-repeats")])
def test_that_no_item_is_repeated_is_a_condition_of_what_needs_it_on_data_that_may_break_it(
    conditions: tuple[str, ...],
) -> None:
    matrices = quickly("edgerand").ledger()[1]
    assert gaps.prepared_entry(matrices, conditions).given == ("epoch", *conditions[::-1], "parts")
    assert gaps.prepared_entry(quickly("dp-popularity").ledger()[0], conditions).given == ("catalogue",)


def test_the_functions_that_other_tools_call_are_where_the_docs_say() -> None:
    names = re.findall(r"`tasks\.privacy\.(\w+)\.(\w+)\(", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    assert len(names) >= 7
    assert all(callable(getattr(import_module(f"tasks.privacy.{module}"), function)) for module, function in names)


SECRET = ("_key", "rng", "generator", "noise", "seed")
PUBLIC = {"noise_multiplier"}


@pytest.mark.parametrize("name", [*LISTS, *SEQUENCES, *RATINGS])
def test_a_saved_model_holds_no_secret(name: str) -> None:
    tensors = set(trained(name).released()) - PUBLIC
    assert not {tensor for tensor in tensors if any(word in tensor.rpartition(".")[2] for word in SECRET)}
