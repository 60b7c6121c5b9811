"""DIPSGNN's noise: its law, when it is drawn, what it is shared by; the same network without it; and what is owed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tasks.core.errors import PrivacyError
from tasks.core.sequences import Sequences
from tasks.models.sessions.dipsgnn import DIPSGNN, prefixes
from tasks.models.sessions.gated import GatedSessions, Queries
from tasks.privacy.accounting.account import account
from tasks.privacy.audits.audit import audit
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.noise import gaussian_by_key
from tests.models.contract import learning, ragged
from tests.models.naive_sessions import joint_states, user_vector
from tests.models.test_sessions import CLIP, KINDS, as_each_by_itself, data
from tests.systems import ids, system_class

FALSE_ALARM = 1e-6
"""Chance of each statistical test below to fail with right code, were its seed not fixed."""
SETTINGS = KINDS["nonp"][0] | {"epsilon": 4.0, "steps": 1}
PER_VISIT = ("rigorous", "cached")


def trained(accounting: str = "published", of=None, name: str = "dipsgnn", **override):
    cls = system_class(name)
    model = cls(cls.Config.model_validate(SETTINGS | {"accounting": accounting} | override))
    return model.fit(of or data(), rng=np.random.default_rng(0))


def many(n_users: int = 60, length: int = 20, n_items: int = 15):
    """Sequences long enough for statistics, repeats among them."""
    rng = np.random.default_rng(5)
    return learning(ragged(rng.integers(0, n_items, (n_users, length)).tolist()), n_users, n_items)


def asking(model: DIPSGNN, sequences: Sequences, *, tested: bool = False) -> Queries:
    return Queries(sequences, model.graphs(sequences), np.zeros(len(sequences), np.int64), tested)


def noise_on(model: DIPSGNN, sequences: Sequences, *, tested: bool = False) -> tuple[torch.Tensor, ...]:
    """What is added to both aggregates of every version, recovered from what the gates receive."""
    asked = asking(model, sequences, tested=tested)
    graphs = asked.graphs
    width = model.config.dimension + model.config.user_dimension
    generator = torch.Generator().manual_seed(0)
    joint = model.scale_states(torch.randn(len(graphs.node_items), width, generator=generator))
    if model.config.accounting == "cached":
        joint = model._cached_states(asked)
    identity, zero = torch.eye(width), torch.zeros(width, width)
    result = []
    with torch.no_grad():
        for through in ((identity, zero), (zero, identity)):
            noisy = model.receive(graphs.steps[0], joint, through, asked)
            result.append(noisy - GatedSessions.receive(model, graphs.steps[0], joint, through, asked))
    return tuple(result)


def normal(values: torch.Tensor, sigma: float) -> bool:
    """Whether independent values may be N(0, sigma²)."""
    return kstest(values.flatten().numpy() / sigma, "norm").pvalue > FALSE_ALARM


def independent(first: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the correlation of two samples is within 5 standard errors of 0, false alarm 6e-7."""
    pair = torch.stack([first.flatten(), other.flatten()])
    return abs(float(torch.corrcoef(pair)[0, 1])) < 5 / pair.shape[1] ** 0.5


class Watched(DIPSGNN):
    """Keeps the noise of every batch of the training run by its user."""

    def train_epoch(self) -> float:
        self.drawn = [*getattr(self, "drawn", []), {}]
        return super().train_epoch()

    def noise(self, step, width, asked):
        drawn = super().noise(step, width, asked)
        if self.network.training and drawn:
            for row, user in enumerate(asked.sequences.users.tolist()):
                self.drawn[-1][user] = torch.cat(drawn, dim=1)[step.owners == row]
        return drawn


def watched(accounting: str, of) -> tuple[Watched, list[torch.Tensor]]:
    """A model, and for each of its epochs the noise of all users, in order of their ids."""
    model = Watched(Watched.Config.model_validate(SETTINGS | {"accounting": accounting, "epochs": 2, "batch_size": 7}))
    model.fit(of, rng=np.random.default_rng(0))
    return model, [torch.cat([epoch[user] for user in sorted(epoch)]) for epoch in model.drawn]


def test_noise_accounted_for_covers_every_epoch_or_one_cached_release():
    sigma = aggregation.rigorous_sigma(6, CLIP, 4.0, 1e-5)
    assert trained("rigorous", epochs=6).sigma == sigma
    assert trained("cached", epochs=6).sigma == aggregation.rigorous_sigma(1, CLIP, 4.0, 1e-5)
    assert sigma > trained("rigorous", epochs=5).sigma


def test_published_noise_is_normal_on_every_coordinate_in_training_and_absent_from_recommendations():
    known = many()
    model = trained(of=known)
    assert [model.sigma, trained(steps=3).sigma] == [aggregation.sigma(steps, CLIP, 4.0, 1e-5) for steps in (1, 3)]
    assert all(not noise.any() for noise in noise_on(model, known.sequences))
    model.network.train()
    after, before = noise_on(model, known.sequences)
    assert torch.equal(noise_on(model, known.sequences)[0], after)
    with torch.no_grad():
        model.network.items.weight[0, 0] += 1e-3
    again, _ = noise_on(model, known.sequences)
    for noise in (after, before, again):
        assert normal(noise, model.sigma)
    assert independent(after, before)
    assert independent(after, again)
    assert independent(after[1:], after[:-1])
    assert independent(after[:, 1:], after[:, :-1])


def test_noise_as_released_is_the_variance_of_the_theorem_as_a_standard_deviation():
    known = many()
    model = trained("released", of=known, clip=0.5, delta=2.5e-7)
    assert model.sigma == pytest.approx(0.732**2, abs=1e-3)
    assert not any(noise.any() for noise in noise_on(model, known.sequences))
    model.network.train()
    for noise in noise_on(model, known.sequences):
        assert normal(noise, model.sigma)
        assert not normal(noise, model.sigma**0.5)


@pytest.mark.parametrize("accounting", ["published", "released", *PER_VISIT])
def test_noise_is_fresh_in_every_epoch_unless_it_is_cached(accounting):
    _, (first, second) = watched(accounting, many())
    if accounting == "cached":
        assert torch.equal(first, second)
    else:
        assert independent(first, second)
        assert (first != second).all()


@pytest.mark.parametrize("accounting", PER_VISIT)
def test_recommendations_come_from_a_release_of_their_own(accounting):
    """Noise that training and recommendations had in common would cancel where the weights, or the events, are others.

    Cached, the same events are the same release.
    """
    known = many()
    model, epochs = watched(accounting, known)
    shown = known.sequences.without_last()
    later = torch.cat(noise_on(model, shown), dim=1)
    others = torch.cat(noise_on(model, replace(shown, items=(shown.items + 1) % 15)), dim=1)
    for noise in epochs:
        assert torch.allclose(later, noise, atol=1e-4) if accounting == "cached" else independent(later, noise)
        assert independent(others, noise)


def release(model: DIPSGNN, sequences: Sequences, *, tested: bool):
    """Aggregates of any prefix, from one table per user that is made once: a row for every visit, with noise.

    The prefix chooses rows; which item follows which it does not look at again.
    """
    network, sigma = model.network, model.sigma
    tables = {}
    for row, user in enumerate(sequences.users.tolist()):
        items = sequences.items[sequences.indptr[row] : sequences.indptr[row + 1]].tolist()
        e_user, vectors = user_vector(network, user), network.items.weight
        if model.config.accounting == "cached":
            vectors, of_users = network.get_buffer("public_items"), network.get_buffer("public_user")
            e_user = of_users @ network.profiles[user] if model.uses_features else of_users[user]
        joint = joint_states(vectors[items], e_user, CLIP)
        visits = prefixes(asking(model, sequences.take(np.array([row])), tested=tested))
        key, width = (model.secret, model.vectors), joint.shape[1]
        after, before, nothing = (
            gaussian_by_key((*key, kind), "aggregates", sigma, ids, width)
            for kind, ids in enumerate((np.append(visits[1:], visits[-1:]), visits, visits))
        )
        after = torch.cat([after[:-1] + joint[1:], after[-1:]])
        before = torch.cat([before[:1], before[1:] + joint[:-1]])
        tables[user] = after, before, nothing

    def aggregates(user: int, items: list[int]):
        after, before, nothing = tables[user]
        out, into = [], []
        for node in dict.fromkeys(items):
            visits = [place for place, item in enumerate(items) if item == node]
            out.append(sum(nothing[place] if place == len(items) - 1 else after[place] for place in visits))
            into.append(sum(before[place] for place in visits))
        return torch.stack(out), torch.stack(into)

    return aggregates


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("epsilon", [None, 4.0])
@pytest.mark.parametrize("name", ["dipsgnn", "priv-u"])
@pytest.mark.parametrize("accounting", PER_VISIT)
def test_all_prefixes_follow_from_one_release(accounting, name, epsilon, training):
    """Scores and gradients are those of slow code that reads the edges from a table with one row per visit.

    One vector of noise for each visit and direction, and one while nothing follows, whose law `test_secure.py` tests.
    """
    model, sequences = trained(accounting, name=name, epsilon=epsilon, epochs=3), data().sequences
    if training:
        model.network.train()
    learnt, asked = (
        {"steps": 1, "clip": CLIP, "aggregates": release(model, sequences, tested=tested)} for tested in (False, True)
    )
    if epsilon is None and accounting == "rigorous":
        del learnt["aggregates"], asked["aggregates"]
    as_each_by_itself(model, sequences, learnt, asked)


@pytest.mark.parametrize("accounting", ["published", "released", *PER_VISIT])
def test_without_propagation_there_is_neither_noise_nor_an_edge_to_account_for(accounting):
    private, public = (trained(accounting, steps=0, epsilon=epsilon) for epsilon in (4.0, None))
    assert torch.equal(private.score_next(data().sequences), public.score_next(data().sequences))
    lists, labels = private.ledger()
    assert (lists.protects, lists.claimed_epsilon, lists.accounted_epsilon) == ("edge", None, None)
    assert "nothing-aggregated" in ids(lists.reasons)
    assert labels.protects == "label"


def test_without_propagation_a_list_tells_the_last_visit_for_certain():
    """Why T = 0 is not ε = 0: with and without its last visit a sequence gets another list, always the same one."""
    rng = np.random.default_rng(5)
    known = learning(ragged([rng.permutation(40)[:20].tolist() for _ in range(60)]), 60, 40)
    model = trained(steps=0, of=known)
    lists = model.score_next(known.sequences).argsort(dim=1, descending=True)
    last = torch.from_numpy(known.sequences.indptr[1:] - 1)
    assert (lists[last] != lists[last - 1]).any(dim=1).all()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("accounting", PER_VISIT)
def test_no_finite_budget_is_accounted_that_the_lists_refute(accounting, budget):
    """Two users who differ in one visit, the first: scores after it prove more than the aggregates' budget."""
    known = learning(ragged([[0], [1]] + [[0, 1, 2, 1], [1, 2, 0, 2]] * 10), 22, 3)
    model = trained(accounting, of=known, epsilon=budget, epochs=30, learning_rate=0.05)
    n = 4000
    shown = [
        model.score_again(Sequences(np.zeros(n, np.int32), np.arange(n + 1), np.full(n, item, np.int32)), first + order)
        for item, first in ((0, 0), (1, n))
        for order in (np.arange(n),)
    ]
    direction = shown[0][: n // 2].mean(0) - shown[1][: n // 2].mean(0)
    proved = audit(*[(scores[n // 2 :] @ direction).double().numpy() for scores in shown], 0.999, 1e-5).epsilon
    assert proved > budget
    assert all(line.accounted_epsilon is None or line.protects == "session graph" for line in model.ledger())


@pytest.mark.parametrize("name", ["dipsgnn", "priv-u"])
def test_published_noise_claims_its_budget_and_is_worth_none(name):
    edges, labels = trained(name=name, steps=2).ledger()
    assert (edges.protects, edges.accounting, edges.claimed_epsilon) == ("edge", "published", 4.0)
    assert edges.accounted_epsilon is None
    assert ids(edges.reasons) == {"recommendations-of-true-graph"}
    assert account(edges.events, edges.accounted_delta).epsilon is None
    assert (labels.protects, labels.claimed_epsilon, labels.accounted_epsilon) == ("label", None, None)


def test_noise_as_released_is_worth_what_the_theorem_gives_at_it_for_aggregates_and_nothing_for_lists():
    """At the paper's C and budget for ML-1M; a larger C makes the noise of the code larger than that of the paper."""
    model = trained("released", epsilon=5.0, clip=0.2, delta=2.5e-7)
    lists, aggregates, labels = model.ledger()
    assert (lists.protects, lists.accounting, lists.claimed_epsilon) == ("edge", "released", 5.0)
    assert (aggregates.protects, aggregates.accounting) == ("session graph", "released")
    assert aggregates.claimed_epsilon == pytest.approx(25.9, abs=0.05)
    assert lists.accounted_epsilon is aggregates.accounted_epsilon is labels.accounted_epsilon is None
    assert ids(lists.reasons) == {"lists-of-true-graph"}
    assert ids(aggregates.reasons) == {"aggregates-alone", "claim-at-drawn-noise"}
    assert account(lists.events, lists.accounted_delta).epsilon is None
    large = trained("released", epsilon=5.0, clip=1.0, delta=2.5e-7).ledger()[1]
    assert large.claimed_epsilon < 5.0


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("accounting", PER_VISIT)
def test_accounted_noise_spends_its_budget_and_no_more(accounting, epochs):
    lists, edges, labels = trained(accounting, epochs=epochs).ledger()
    assert (lists.protects, lists.claimed_epsilon, lists.accounted_epsilon) == ("edge", None, None)
    assert ids(lists.reasons) == {"lists-of-prefixes"}
    assert edges.protects == "session graph"
    # The item vectors of every step are trained without noise, and other users' sums with them.
    moving = accounting == "rigorous"
    assert ids(edges.reasons) == {"aggregates-alone", *(["states-learnt"] if moving else [])}
    assert (edges.unit == "visit-given-states") == ("states" in edges.given) == moving
    assert (edges.accounting, edges.claimed_epsilon, edges.claimed_delta) == ("rigorous", 4.0, 1e-5)
    assert 0.99 * 4.0 < edges.accounted_epsilon <= 4.0
    spent = account(edges.events, edges.accounted_delta)
    assert spent.epsilon == edges.accounted_epsilon
    assert sum(event.count for event in edges.events) == (1 if accounting == "cached" else epochs)
    assert labels.accounted_epsilon is None
    covered = {"covers-initial"} if accounting == "cached" else {"covers-aggregates", "item-vectors-exact"}
    assert ids(edges.gaps) & {"covers-initial", "covers-aggregates", "item-vectors-exact"} == covered


@pytest.mark.parametrize("name", ["dipsgnn", "nonp-u", "edgerand"])
def test_without_noise_nothing_is_claimed(name):
    assert trained(epsilon=None, name=name).ledger() == []


def test_a_loaded_model_repeats_the_release_of_the_saved_one_to_who_has_the_key(tmp_path):
    """... for a model with user ids as well. The file does not have it: with it noise could be taken off."""
    for accounting in PER_VISIT:
        for name in ("dipsgnn", "priv-u"):
            model = trained(accounting, name=name)
            model.save(tmp_path / "model.safetensors")
            loaded = system_class(name).load(tmp_path / "model.safetensors")
            with pytest.raises(PrivacyError, match="no key of its noise"):
                loaded.score_next(data().sequences)
            loaded.key = model.key
            assert torch.equal(loaded.score_next(data().sequences), model.score_next(data().sequences))
