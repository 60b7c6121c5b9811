"""Which releases of DIPSGNN share noise: those of the same visits and users under the same key, and no others."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.core.sequences import Sequences
from tasks.models.sessions.gated import Queries
from tasks.models.sessions.sequential import NO_DROPOUT, Dropout
from tests.models.contract import learning, ragged
from tests.models.test_dipsgnn import PER_VISIT, independent, many, noise_on, trained
from tests.models.test_sessions import OWNERS, PARTS, data


@pytest.mark.parametrize("accounting", PER_VISIT)
def test_noise_is_a_function_of_its_arguments(accounting):
    """The same again whatever was asked, fitted or loaded in between, and whether the model trains or not."""
    known = many()
    model = trained(accounting, of=known)
    noise = torch.cat(noise_on(model, known.sequences))
    model.score_next(many(5).sequences)
    model.score_again(known.sequences, np.arange(60))
    model.network.train()
    model.epochs_done = 7
    assert torch.equal(torch.cat(noise_on(model, known.sequences)), noise)
    with torch.no_grad():
        model.network.items.weight[0, 0] += 1e-3  # other vectors, where not those of the start are aggregated
    other = torch.cat(noise_on(model, known.sequences))
    assert torch.equal(other, noise) if accounting == "cached" else independent(other, noise)


@pytest.mark.parametrize("accounting", PER_VISIT)
def test_sequences_that_differ_share_the_noise_of_what_they_have_in_common_alone(accounting):
    """The 10th of 20 items is another: what precedes it stays, and nothing can be told by subtracting the rest."""
    rng = np.random.default_rng(3)
    parts = [rng.permutation(20).tolist() for _ in range(60)]
    others = [[*part[:9], 20, *part[10:]] for part in parts]
    model = trained(accounting, of=learning(ragged(parts), 60, 21))
    single, other = ([noise.reshape(60, -1, 8) for noise in noise_on(model, ragged(of))] for of in (parts, others))
    for first, second in zip(single, other, strict=True):
        # versions by node: the first of item p (nothing follows) at 2p, then that with a successor at 2p + 1
        assert torch.allclose(first[:, :17], second[:, :17], atol=1e-5)
        assert independent(first[:, 18:], second[:, 18:])
    assert independent(single[0][:, 17], other[0][:, 17])  # what follows the 9th item


def test_no_two_draws_of_a_users_noise_are_alike():
    known = many()
    model = trained("rigorous", of=known)
    first, second = (model.score_again(known.sequences, np.full(60, draw)) for draw in (0, 1))
    torch.testing.assert_close(first, model.score_next(known.sequences), rtol=0, atol=1e-5)
    assert (first != second).all()


@pytest.mark.parametrize("accounting", PER_VISIT)
def test_a_tested_sequence_that_begins_like_training_shares_no_noise_with_it(accounting):
    """Else equal aggregates of the two would tell what both begin with."""
    known = many()
    model = trained(accounting, of=known)
    learnt, tested = (torch.cat(noise_on(model, known.sequences, tested=tested)) for tested in (False, True))
    assert independent(learnt, tested)
    assert (learnt != tested).all()


@pytest.mark.parametrize("name", ["dipsgnn", "edgerand"])
def test_what_is_scored_is_asked_for_as_tested_and_what_is_learnt_from_is_not(name, monkeypatch):
    model, sequences, parts = trained(name=name), data().sequences, []
    update = type(model).update

    def noted(self, step, joint, through, own, asked: Queries):
        parts.append(asked.tested)
        return update(self, step, joint, through, own, asked)

    monkeypatch.setattr(type(model), "update", noted)
    model.loss(sequences, NO_DROPOUT)
    model.score_next(sequences)
    model.score_again(sequences, np.zeros(len(sequences), np.int64))
    assert parts == [False, True, True]


def test_users_do_not_share_noise():
    """The same sequence of two users, and the same features."""
    known = learning(ragged(PARTS + PARTS, users=[*OWNERS, *range(10, 18)]), 18, 7)
    known = replace(known, features=np.ones((18, 4), np.float32))
    model = trained("rigorous", of=known)
    first = torch.cat(noise_on(model, ragged(PARTS, users=OWNERS)))
    other = torch.cat(noise_on(model, ragged(PARTS, users=list(range(10, 18)))))
    assert independent(first, other)
    assert (first != other).all()


def test_another_visit_changes_no_mask_of_what_is_aggregated():
    """Given the vectors, which both neighbours have; with others masks are independent (six standard errors)."""
    model, sequences = trained("rigorous", of=many(), dropout=0.3), many().sequences
    indptr = sequences.indptr - (np.arange(len(sequences.indptr)) > 0)
    shorter = Sequences(sequences.users, indptr, np.delete(sequences.items, 3))

    def kept(of: Sequences) -> dict[tuple[int, int], torch.Tensor]:
        graphs = model.graphs(of)
        states = model.initial_states(graphs, of, Dropout(0.3, np.random.default_rng(len(of.items))))
        users = of.users[graphs.node_owners.numpy()].tolist()
        return dict(zip(zip(users, graphs.node_items.tolist(), strict=True), states.detach() != 0, strict=True))

    first, other = kept(sequences), kept(shorter)
    assert all(torch.equal(mask, first[node]) for node, mask in other.items())
    with torch.no_grad():
        model.network.items.weight *= 2
    masks = (torch.stack([*of.values()]).float() for of in (first, kept(sequences)))
    for mask, expected in zip((of_first := next(masks), of_first * next(masks)), (0.7, 0.49), strict=True):
        assert abs(float(mask.mean()) - expected) < 6 * (expected * (1 - expected) / mask.numel()) ** 0.5
