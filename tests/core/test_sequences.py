"""Sequences say what a plain list of lists says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.sequences import Sequences

Lists = dict[int, list[int]]
"""User -> items, first to last."""

lists = st.dictionaries(st.integers(0, 30), st.lists(st.integers(0, 9), min_size=1, max_size=7), max_size=8)


def made(events: Lists) -> Sequences:
    users = [user for user, items in events.items() for _ in items]
    items = [item for items in events.values() for item in items]
    return Sequences.from_events(np.array(users, np.int32), np.array(items, np.int32))


def listed(sequences: Sequences) -> Lists:
    bounds = zip(sequences.users, sequences.indptr[:-1], sequences.indptr[1:], strict=True)
    return {int(user): sequences.items[start:end].tolist() for user, start, end in bounds}


@given(lists)
def test_events_come_back_in_their_order(events: Lists) -> None:
    actual = made(events)
    assert list(listed(actual).items()) == list(events.items())
    assert (len(actual), actual.n_events) == (len(events), sum(map(len, events.values())))
    assert actual.lengths.tolist() == [len(items) for items in events.values()]


@given(lists)
def test_every_event_knows_whose_it_is_and_what_comes_next(events: Lists) -> None:
    actual = made(events)
    flat = [(owner, place, items) for owner, items in enumerate(events.values()) for place in range(len(items))]
    assert actual.owners.tolist() == [owner for owner, _, _ in flat]
    assert actual.positions.tolist() == [place for _, place, _ in flat]
    assert actual.has_next.tolist() == [place + 1 < len(items) for _, place, items in flat]
    assert actual.next_items.tolist() == [item for items in events.values() for item in items[1:]]


@given(lists, st.data())
def test_taking_keeps_the_asked_order(events: Lists, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(events))))[: len(events) // 2 + 1]
    users = list(events)
    taken = made(events).take(np.array(rows, np.int64))
    assert list(listed(taken).items()) == [(users[row], events[users[row]]) for row in rows]


@given(lists, st.integers(1, 4))
def test_batches_are_the_whole_in_parts(events: Lists, size: int) -> None:
    parts = list(made(events).batches(size))
    assert [pair for part in parts for pair in listed(part).items()] == list(events.items())
    assert all(len(part) <= size for part in parts)


@given(lists)
def test_padding_fills_what_lies_after_the_end(events: Lists) -> None:
    longest = max((len(items) for items in events.values()), default=0)
    expected = [items + [99] * (longest - len(items)) for items in events.values()]
    assert made(events).pad(99).tolist() == expected


@given(lists)
def test_without_the_last_event_the_rest_is_as_it_was(events: Lists) -> None:
    expected = {user: items[:-1] for user, items in events.items() if len(items) > 1}
    assert listed(made(events).without_last()) == expected


def test_events_of_a_user_that_lie_apart_are_refused() -> None:
    users, items = np.array([0, 1, 0], np.int32), np.array([1, 2, 3], np.int32)
    with pytest.raises(ValueError, match="do not lie together"):
        Sequences.from_events(users, items)
    with pytest.raises(ValueError, match="3 users next to 2 items"):
        Sequences.from_events(users, items[:2])
