"""The graphs of all prefixes against brute force: every prefix's graph by itself, refined step by step."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from tasks.graph.prefixes import prefix_graphs
from tests.models.contract import ragged


class Names(dict):
    """A number for every state that a node can have: equal numbers, equal states."""

    def of(self, *parts):
        return self.setdefault(parts, len(self))


def multiset(states):
    return tuple(sorted(Counter(states).items()))


def brute_force(items: list[int], n_steps: int, names: Names) -> list[int]:
    """The state of each node of one prefix, in order of first visit: its own, and the multisets of its neighbours'."""
    nodes = list(dict.fromkeys(items))
    state = {item: names.of("item", item) for item in nodes}
    for _ in range(n_steps):
        state = {
            item: names.of(
                state[item],
                multiset(state[after] for before, after in pairwise(items) if before == item),
                multiset(state[before] for before, after in pairwise(items) if after == item),
            )
            for item in nodes
        }
    return [state[item] for item in nodes]


def neighbours(block, centre):
    return block.sources[block.indptr[centre] : block.indptr[centre + 1]].tolist()


def states_of_versions(graphs, names: Names) -> list[int]:
    """The state that each final version stands for, read off the steps."""
    states = [names.of("item", item) for item in graphs.node_items.tolist()]
    for step in graphs.steps:
        states = [
            names.of(
                states[previous],
                multiset(states[source] for source in neighbours(step.successors, version)),
                multiset(states[source] for source in neighbours(step.predecessors, version)),
            )
            for version, previous in enumerate(step.previous.tolist())
        ]
    return states


SPECIAL = [
    [[3]],
    [[1, 1, 1, 1]],
    [[0, 1, 0, 1, 0, 1]],
    [[0, 0, 1, 1, 0]],
    [[2, 2]],
    [[5], [5], [4, 5, 5, 4]],
    [list(range(9))],
    [[0, 1, 2, 0, 3, 1, 1, 2, 4, 0]],
]


def random_parts(seed: int) -> list[list[int]]:
    """One to five sequences of 1 to 14 events, from alphabets so small that all kinds of repetition occur."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, rng.integers(1, 9), rng.integers(1, 15)).tolist() for _ in range(rng.integers(1, 6))]


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("n_steps", [0, 1, 2, 3])
def test_every_prefix_has_the_states_of_its_own_graph(n_steps, share):
    for parts in [*SPECIAL, *map(random_parts, range(40))]:
        sequences, names = ragged(parts), Names()
        graphs = prefix_graphs(sequences, n_steps, share=share)
        states = states_of_versions(graphs, names)
        event = 0
        for part in parts:
            for end in range(1, len(part) + 1):
                expected = brute_force(part[:end], n_steps, names)
                members = neighbours(graphs.members, event)
                assert [states[version] for version in members] == expected
                nodes = list(dict.fromkeys(part[:end]))
                assert members.index(int(graphs.last[event])) == nodes.index(part[end - 1])
                event += 1
        assert len(graphs.last) == event


@pytest.mark.parametrize("share", [True, False])
def test_owners_and_visits_of_every_version_are_those_of_its_prefix(share):
    for parts in [*SPECIAL, *map(random_parts, range(20))]:
        sequences = ragged(parts)
        graphs = prefix_graphs(sequences, 1, share=share)
        (step,) = graphs.steps
        assert graphs.event_owners.tolist() == sequences.owners.tolist()
        assert step.owners.tolist() == graphs.node_owners[step.previous].tolist()
        for event in range(sequences.n_events):
            first = int(sequences.indptr[sequences.owners[event]])
            for version in neighbours(graphs.members, event):
                item = int(graphs.node_items[step.previous[version]])
                expected = [past for past in range(first, event + 1) if sequences.items[past] == item]
                assert neighbours(step.visits, version) == expected
                places = slice(int(step.visits.indptr[version]), int(step.visits.indptr[version + 1]))
                assert step.ends[places].tolist() == [past == event for past in expected]


def test_versions_grow_with_the_length_of_a_sequence_not_with_its_square():
    """An event touches its item and the one before; a step on, also the one before that."""
    n = 200
    graphs = prefix_graphs(ragged([list(range(n))]), 2)
    assert [len(step.owners) for step in graphs.steps] == [2 * n - 1, 3 * n - 3]
    apart = prefix_graphs(ragged([list(range(n))]), 2, share=False)
    assert [len(step.owners) for step in apart.steps] == [n * (n + 1) // 2] * 2


def test_sequences_have_no_part_in_each_others_graphs():
    """The graphs of several are those of each, one after the other."""
    parts = random_parts(3) + random_parts(4)
    together = prefix_graphs(ragged(parts), 2)
    alone = [prefix_graphs(ragged([part]), 2) for part in parts]
    assert together.node_items.tolist() == [item for graphs in alone for item in graphs.node_items.tolist()]
    for number, step in enumerate(together.steps):
        before = 0
        for graphs in alone:
            n_versions = len(graphs.steps[number].owners)
            part = slice(before, before + n_versions)
            assert torch.equal(step.successors.indptr.diff()[part], graphs.steps[number].successors.indptr.diff())
            before += n_versions
        assert before == len(step.owners)
