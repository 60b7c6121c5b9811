"""EdgeRand against dense noisy matrices, one prefix at a time; whose noise it is, and what it is worth."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tasks.core.sequences import Sequences
from tasks.models.sessions import dense
from tasks.models.sessions.edgerand import EdgeRand
from tasks.models.sessions.gated import Queries, gru_update
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import aggregation
from tests.models.contract import learning, ragged
from tests.models.naive_sessions import all_scores
from tests.models.test_sessions import CLIP, KINDS, as_each_by_itself, data
from tests.systems import ids

SETTINGS = KINDS["edgerand"][0] | {"epsilon": 4.0, "steps": 1}
WITHOUT_REPEATS = [[0, 1, 2, 3], [4, 2], [6, 5, 1]]


def trained(of=None, **override) -> EdgeRand:
    model = EdgeRand(EdgeRand.Config.model_validate(SETTINGS | override))
    return model.fit(of or data(), rng=np.random.default_rng(0))


def matrices(
    model: EdgeRand, sequences: Sequences, *, tested: bool = False
) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
    """User -> the noise on A_out and on A_in, each (n_nodes, n_nodes)."""
    asked = Queries(sequences, model.graphs(sequences), np.zeros(len(sequences), np.int64), tested)
    graphs = asked.graphs
    result = {}
    tables = [model.matrices(asked, direction) for direction in range(2)]
    for row, user in enumerate(sequences.users.tolist()):
        mine = graphs.node_owners == row
        result[user] = tuple(table[mine][:, : int(mine.sum())] for table in tables)
    return result


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_all_prefixes_at_once_are_as_each_by_itself_with_its_dense_noisy_matrices(steps):
    """Scores and gradients; the compiled backward pass against autograd's."""
    model, sequences = trained(steps=steps), data().sequences
    learnt, asked = (
        {"steps": steps, "clip": CLIP, "matrix_noise": matrices(model, sequences, tested=tested).get}
        for tested in (False, True)
    )
    expected = as_each_by_itself(model, sequences, learnt, asked)
    quiet = all_scores(model.network, sequences, steps=steps, clip=CLIP).detach()
    assert (quiet - expected).abs().max() > 1e-2


def test_sums_over_every_prefix_are_those_of_a_loop_and_all_gradients_pass_the_check():
    """In double precision: against a loop, and the analytic gradients against finite differences."""
    rng = np.random.default_rng(4)
    sequences = ragged([rng.integers(0, 5, length).tolist() for length in (6, 1, 9, 3)])
    graphs = trained().graphs(sequences)
    places = dense.Places.from_graphs(graphs)
    n_nodes, members, node = len(graphs.node_items), graphs.members, graphs.steps[0].previous
    longest = int(torch.bincount(graphs.node_owners).max())

    def normal(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.normal(size=shape)).requires_grad_()

    noises, messages = [normal(n_nodes, longest).detach() for _ in range(2)], normal(len(node), 3)
    expected = torch.zeros(len(node), 3, dtype=torch.float64)
    for prefix in range(sequences.n_events):
        versions = members.sources[members.indptr[prefix] : members.indptr[prefix + 1]]
        for version in versions:
            expected[version] = noises[0][node[version], : len(versions)] @ messages[versions]
    torch.testing.assert_close(dense.noisy_sums(places, noises[0], messages), expected)
    assert torch.autograd.gradcheck(lambda values: dense.noisy_sums(places, noises[0], values), [messages])
    states = [normal(n_nodes, 3), normal(n_nodes, 3), normal(3), normal(n_nodes, 3), normal(n_nodes, 1)]
    assert torch.autograd.gradcheck(lambda a, b, *more: dense.first_states(places, *noises, a, b, *more), states)


@pytest.mark.parametrize("size", [0.1, 3.0, 100.0])
def test_gates_are_those_of_a_recurrent_unit_whatever_they_receive(size):
    """... of one node without neighbours, in single precision; what is not a number stays that."""
    graphs = trained().graphs(ragged([[0]]))
    rng = np.random.default_rng(0)
    constant, recurrent, kept = (
        torch.from_numpy(rng.normal(0, size, shape)).float() for shape in ((1500,), (1, 1500), (1, 500))
    )
    constant[7] = torch.nan
    nothing = [torch.zeros(1, 1)] * 2 + [torch.zeros(1, 1500)] * 2
    actual = dense.first_states(dense.Places.from_graphs(graphs), *nothing, constant, recurrent, kept)
    expected = gru_update(constant[None].double(), recurrent.double(), kept.double()).float()
    torch.testing.assert_close(actual, expected, rtol=2e-6, atol=2e-6 * size, equal_nan=True)


def test_a_tested_sequence_that_begins_like_training_shares_no_noise_with_it():
    model, sequences = trained(), data().sequences
    learnt, tested = (matrices(model, sequences, tested=tested) for tested in (False, True))
    for user, tables in learnt.items():
        assert all((mine != other).all() for mine, other in zip(tables, tested[user], strict=True))


def test_a_users_noise_depends_neither_on_others_nor_on_how_much_of_the_sequence_is_shown():
    model, sequences = trained(), data().sequences
    together = matrices(model, sequences)
    for row, user in enumerate(sequences.users.tolist()):
        (alone,) = matrices(model, sequences.take(np.array([row]))).values()
        for single, other in zip(alone, together[user], strict=True):
            assert torch.equal(single, other)
    for user, shorter in matrices(model, sequences.without_last()).items():
        for single, other in zip(shorter, together[user], strict=True):
            assert torch.equal(single, other[: len(single), : len(single)])


def test_noise_is_drawn_once_for_a_sequence_whatever_it_is_asked_for():
    """... normal, with the standard deviation of one release of sensitivity 1; tests fail by chance once in a million.

    Entries do not change with the epoch, and those of users, directions and other sequences have nothing in common.
    """
    rng = np.random.default_rng(6)
    parts = [rng.permutation(25).tolist() for _ in range(40)]
    known = learning(ragged(parts), 40, 25)
    model = trained(known, epochs=2)

    def drawn(of: list[list[int]]) -> torch.Tensor:
        return torch.stack([torch.stack(pair) for pair in matrices(model, ragged(of)).values()])

    noise = drawn(parts)
    model.epochs_done = 0
    model.network.train()
    assert torch.equal(drawn(parts), noise)
    assert model.sigma == aggregation.sigma(1, 1.0, 4.0, 1e-5)
    assert noise.shape == (40, 2, 25, 25)
    assert kstest(noise.flatten().numpy() / model.sigma, "norm").pvalue > 1e-6
    changed = drawn([[*part[:9], part[10], part[9], *part[11:]] for part in parts])
    assert torch.equal(changed[:, :, :9, :9], noise[:, :, :9, :9])
    pairs = [
        (changed[:, :, 9:], noise[:, :, 9:]),
        (changed[:, :, :9, 9:], noise[:, :, :9, 9:]),
        (noise[:, 0], noise[:, 1]),
        (noise[0], noise[1]),
        (noise, noise.mT.flip(0)),
        (noise[:, :, :12, 13:], noise[:, :, 13:, :12].mT),
    ]
    for left, other in pairs:
        correlation = torch.corrcoef(torch.stack([left.flatten(), other.flatten()]))[0, 1]
        assert abs(float(correlation)) < 5 / left.numel() ** 0.5


def test_a_claim_for_one_entry_is_worth_less_for_a_visit():
    """One visit changes six entries; the sound account of the same noise is larger than the claim, and finite."""
    model = trained(learning(ragged(WITHOUT_REPEATS), 3, 7))
    lists, edges, labels = model.ledger()
    assert (lists.protects, lists.claimed_epsilon, lists.accounted_epsilon) == ("edge", 4.0, None)
    assert ids(lists.reasons) == {"lists-of-prefixes"}
    assert (edges.protects, edges.claimed_epsilon, edges.claimed_delta) == ("session graph", 4.0, 1e-5)
    assert ids(edges.reasons) == {"matrices-alone"}
    assert "covers-matrices" in ids(edges.gaps)
    assert "covers-aggregates" not in ids((*lists.gaps, *edges.gaps))
    assert 4.0 < edges.accounted_epsilon < np.inf
    assert account(edges.events, 1e-5).epsilon == edges.accounted_epsilon
    assert edges.events[0].parameters["noise_multiplier"] == pytest.approx(model.sigma / 6**0.5)
    assert (labels.protects, labels.accounted_epsilon) == ("label", None)


def test_no_visit_moves_the_entries_of_both_matrices_further_than_the_square_root_of_six():
    """Brute force over all sequences without repeats: a visit's transitions go, and one closes the gap."""
    furthest = 0.0
    for length in range(1, 6):
        for place in range(length):
            before, after = torch.zeros(2, length, length)
            for i in range(length - 1):
                before[i, i + 1] = 1
            kept = [i for i in range(length) if i != place]
            for i, j in pairwise(kept):
                after[i, j] = 1
            furthest = max(furthest, float(2 * (before - after).square().sum()) ** 0.5)
    assert furthest == pytest.approx(6**0.5)


def test_with_repeated_items_no_guarantee_follows_and_a_loaded_model_knows(tmp_path):
    model = trained()
    _, edges, _ = model.ledger()
    assert (edges.claimed_epsilon, edges.accounted_epsilon) == (4.0, None)
    assert ids(edges.reasons) == {"repeated-items"}
    model.save(tmp_path / "model.safetensors")
    loaded = EdgeRand.load(tmp_path / "model.safetensors")
    assert loaded.ledger() == model.ledger()
    loaded.key = model.key
    assert torch.equal(loaded.score_next(data().sequences), model.score_next(data().sequences))
