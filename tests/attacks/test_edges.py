"""The attacker reaches the best possible advantage where that is known, certainty without noise, and else nothing."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from tasks.attacks import edge_worlds, edges
from tasks.attacks.edge_worlds import remove_visit, swap_visits
from tasks.attacks.edges import Advantage, aggregate_advantage, aggregate_difference, list_advantage, mean_advantage
from tasks.core.sequences import Sequences
from tasks.graph.ops import weighted_sum
from tasks.graph.prefixes import prefix_graphs

N_ITEMS, LENGTH = 60, 10


def lists(n: int, rng: np.random.Generator, *, favoured: float = 0.0) -> np.ndarray:
    """Top lists of noisy scores; item 0 is favoured."""
    scores = rng.normal(np.linspace(0, 2, N_ITEMS), 1, (n, N_ITEMS))
    scores[:, 0] += favoured
    return np.argsort(-scores, axis=1)[:, :LENGTH]


def test_removing_and_swapping_visits() -> None:
    sequence = np.array([4, 7, 4, 9, 2], np.int32)
    assert remove_visit(sequence, 1).tolist() == [4, 4, 9, 2]
    assert remove_visit(sequence, 3).tolist() == [4, 7, 4, 2]
    assert swap_visits(sequence, 1).tolist() == [4, 4, 7, 9, 2]
    assert swap_visits(sequence, 2).tolist() == [4, 7, 9, 4, 2]
    assert sequence.tolist() == [4, 7, 4, 9, 2]


def test_a_world_without_an_event_shows_the_list_of_the_event_before() -> None:
    assert edge_worlds.listed_events(5, None).tolist() == [0, 1, 2, 3, 4]
    assert edge_worlds.listed_events(5, 2).tolist() == [0, 1, 1, 2, 3]
    assert edge_worlds.listed_events(5, 4).tolist() == [0, 1, 2, 3, 3]


def test_worlds_differ_by_no_more_than_a_visit_and_by_something() -> None:
    """All sequences of four and five visits of three items; rows of norm 0.4, all signs."""
    furthest = {remove_visit: 0.0, swap_visits: 0.0}
    directions = [0.4 * np.array(signs)[:, None] for signs in itertools.product([-1.0, 1.0], repeat=3)]
    equilateral = [0.4 * np.array([[math.cos(angle), math.sin(angle)] for angle in np.arange(3) * 2 * math.pi / 3])]
    for length in (4, 5):
        for sequence, position in itertools.product(itertools.product(range(3), repeat=length), range(1, length - 2)):
            items = np.array(sequence)
            for make in furthest:
                world = make(items, position)
                norms = [np.linalg.norm(aggregate_difference(items, world, h)) for h in (*directions, *equilateral)]
                changed = edge_worlds._transitions(world) != edge_worlds._transitions(items)
                assert (norms[-1] > 0.1) == changed
                furthest[make] = max(furthest[make], *norms)
    assert furthest[remove_visit] == pytest.approx(0.4 * math.sqrt(10), rel=1e-12)
    assert furthest[swap_visits] <= 0.4 * math.sqrt(18) * (1 + 1e-12)


def test_a_swap_reaches_its_bound() -> None:
    """The user comes back to the item before; the three items point as far apart as three can."""
    angles = np.arange(3) * 2 * math.pi / 3
    embeddings = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    moved = aggregate_difference([0, 1, 2, 0], swap_visits(np.array([0, 1, 2, 0]), 1), embeddings)
    assert np.linalg.norm(moved) == pytest.approx(math.sqrt(18), rel=1e-12)


def test_what_precedes_a_visit_is_released_twice_where_every_state_has_noise() -> None:
    """All states that the shipped graphs give to the nodes of either world."""
    table = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 4)))

    def states(items: np.ndarray) -> torch.Tensor:
        graphs = prefix_graphs(Sequences(np.zeros(1, np.int32), np.array([0, len(items)]), items.astype(np.int32)), 1)
        (step,), result, vectors = graphs.steps, torch.zeros(12, 2, 8), table[graphs.node_items].float()
        blocks = step.successors, step.predecessors
        sums = [weighted_sum(block, torch.ones(len(block.sources)), vectors) for block in blocks]
        place = torch.arange(len(step.previous)) - torch.searchsorted(step.previous, step.previous)
        result[graphs.node_items[step.previous], place] = torch.cat(sums, dim=1)
        return result

    items = np.random.default_rng(1).permutation(12)[:9]
    for world in (remove_visit(items, 3), swap_visits(items, 6)):
        moved = aggregate_difference(items, world, table.numpy(), twice=True)
        assert np.linalg.norm(moved) == pytest.approx(float((states(world) - states(items)).norm()), rel=1e-6)


@pytest.mark.parametrize(("sigma", "releases"), [(0.5, 1), (2.0, 1), (2.0, 9), (10.0, 4), (0.1, 1)])
def test_the_played_attack_agrees_with_the_closed_form(sigma: float, releases: int) -> None:
    """The attacker's threshold is not quite the best, so its own advantage is a little below; the interval, at least
    95 % wide, holds the closed form in at least 90 of 100 plays (fewer than that: 1 % if it held it in 95 %)."""
    difference = np.random.default_rng(1).normal(size=(2, 3, 4)) / 4
    distance = np.linalg.norm(difference)
    rng = np.random.default_rng(2)
    plays = [aggregate_advantage(difference, sigma, releases, 2000, rng) for _ in range(100)]
    optimal = 2 * norm.cdf(math.sqrt(releases) * distance / (2 * sigma)) - 1
    assert [play.optimal for play in plays] == pytest.approx([optimal] * 100, rel=1e-9)
    assert sum(play.low <= optimal <= play.high for play in plays) >= 90
    assert np.mean([play.value for play in plays]) <= optimal + 4 * 0.03 / math.sqrt(100)


def test_aggregates_without_noise_give_everything_away_and_equal_ones_nothing() -> None:
    rng = np.random.default_rng(0)
    assert aggregate_advantage([[0.0, 1e-9]], 0.0, 1, 10, rng) == Advantage(1, 1, 1, 1)
    assert aggregate_advantage([1e150], 1e-300, 1, 10, rng) == Advantage(1, 1, 1, 1)
    assert aggregate_advantage([1e150], 1e-3, 1, 10, rng).value == 1
    for sigma in (0.0, 1.0):
        assert aggregate_advantage(np.zeros((2, 3)), sigma, 5, 10, rng) == Advantage(0, 0, 0, 0)


def test_lists_that_never_vary_and_differ_are_told_apart_always() -> None:
    """In one item, or in the order alone."""
    rng = np.random.default_rng(0)
    first = np.tile(np.arange(5), (40, 1))
    for other in ([0, 1, 2, 3, 9], [1, 0, 2, 3, 4]):
        actual = list_advantage(first, np.tile(other, (40, 1)), 10, rng)
        assert actual.value == actual.high == 1
        assert actual.low > 0.5
    assert list_advantage(first, first, 10, rng).value == 0


def test_lists_of_the_same_law_are_told_apart_by_chance_alone() -> None:
    """Shuffled worlds: lists of both are dealt to either. Intervals hold 0 at 95 % or more: fewer than 45 of 50 do
    with probability 4 %, were it 95 % exactly."""
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(50):
        pool = rng.permutation(np.concatenate([lists(60, rng), lists(60, rng, favoured=3)]))
        actual = list_advantage(pool[:60], pool[60:], N_ITEMS, rng)
        held += actual.low <= 0 <= actual.high
    assert held >= 45


def test_the_attack_on_lists_finds_what_is_there() -> None:
    """An item that is in the list with probability 0.1 in one world and 0.8 in the other, all else random: the best
    attacker's advantage is 0.7. Measured on 1,000 lists of each: 4 standard deviations are 0.07."""
    rng = np.random.default_rng(6)
    worlds = []
    for probability in (0.1, 0.8):
        world = np.argsort(rng.random((2000, 20)), axis=1)[:, :5] + 1
        world[rng.random(2000) < probability, 2] = 0
        worlds.append(world)
    actual = list_advantage(*worlds, 21, rng)
    assert actual.value == pytest.approx(0.7, abs=0.07)
    assert actual.low < 0.7 < actual.high


def test_of_lists_at_several_times_all_are_read() -> None:
    """One of three lists differs between worlds, in its items, or in their order alone; where none does, chance."""
    rng = np.random.default_rng(8)
    lists = np.argsort(rng.random((2, 400, 3, 20)), axis=3)[..., :5]
    chance = list_advantage(lists[0], lists[1], 20, np.random.default_rng(1))
    assert chance.low < 0 < chance.high
    lists[1, :, 1] = [7, 8, 9, 10, 11]
    assert list_advantage(lists[0], lists[1], 20, np.random.default_rng(1)).value > 0.95
    same = np.broadcast_to(np.arange(5), (2, 40, 3, 5)).copy()
    assert list_advantage(same[0], same[1], 20, rng).value == 0
    same[1, :, 2] = same[1, :, 2, ::-1]
    assert list_advantage(same[0], same[1], 20, rng).value == 1


def test_what_the_attacker_measures_itself_on_teaches_it_nothing() -> None:
    """More items than lists, one list each by chance: an attacker that saw them all would be right every time."""
    rng = np.random.default_rng(8)
    worlds = np.argsort(rng.random((2, 100, 2000)), axis=2)[:, :, :20]
    actual = list_advantage(*worlds, 2000, rng)
    assert actual.low < 0 < actual.high


def test_the_mean_of_one_target_is_that_target_and_of_none_an_error() -> None:
    first = Advantage(0.5, 0.2, 0.7)
    assert mean_advantage([first]) == first
    assert mean_advantage([first, Advantage(0.7, 0.6, 0.8, 0.75)]).optimal is None
    with pytest.raises(ValueError, match="one or more"):
        mean_advantage([])


def test_the_threshold_is_the_best_of_all() -> None:
    """Against every cut between the values, with ties."""
    rng = np.random.default_rng(11)
    for _ in range(20):
        world0, world1 = rng.integers(0, 8, 15) / 2, rng.integers(2, 10, 15) / 2
        threshold = edges._threshold(world0, world1)
        best = max((world1 > cut).mean() - (world0 > cut).mean() for cut in np.arange(-1, 12) / 2 + 0.25)
        assert (world1 > threshold).mean() - (world0 > threshold).mean() == pytest.approx(best)
