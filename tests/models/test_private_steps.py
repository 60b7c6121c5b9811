"""What models that take private steps of their own promise alike: clipping, noise on everything, all of it counted."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats

from tests.models import test_dpae as lists
from tests.models import test_session_dpsgd as sessions
from tests.models.contract import First, Stretch


class Kind(NamedTuple):
    """A model, fitted on data of so many users, and what its step takes for some of them."""

    module: Any
    asked: Any
    wide: dict[str, int]

    def step(self, users: np.ndarray, **override: Any) -> tuple[Any, list[str], torch.Tensor]:
        """A model after a step, which of its parameters stayed as they were, and all that was released."""
        model, sums = self.module.fitted(progress=Stretch(0), **override), []
        model._rng = np.random.default_rng(9)
        model.watch = lambda parts, _: sums.extend(part.flatten() for part in parts)
        before = model.weights()
        model.private_step(self.asked(users))
        names = [name for name in ("items", "biases") if name in before] or [*dict(model.network.named_parameters())]
        return model, [name for name in names if torch.equal(model.weights()[name], before[name])], torch.cat(sums)


KINDS = {
    "dpae": Kind(lists, lambda users: users, {"dimension": 400}),
    "dpsgd": Kind(sessions, sessions.wandering(sessions.N_USERS, seed=6, shortest=2).take, {"dimension": 30}),
}
BOTH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@BOTH
def test_one_user_moves_a_step_by_no_more_than_the_clip_norm(kind: Kind) -> None:
    """With the same noise; and just so much, because every gradient is longer."""
    everyone = np.arange(kind.module.N_USERS)
    first, other = (kind.step(users, clip_norm=0.01, epsilon=50.0)[2] for users in (everyone[:-1], everyone))
    assert (other - first).norm().item() == pytest.approx(0.01, rel=1e-3)


@BOTH
def test_a_step_without_any_user_still_makes_noise_of_the_stated_size_on_every_parameter(kind: Kind) -> None:
    """Kolmogorov–Smirnov; false alarm: one in 1,000."""
    model, still, noise = kind.step(np.zeros(0, np.int64), **kind.wide)
    scale = model.ledger()[0].events[0].parameters["noise_multiplier"] * model.config.clip_norm
    assert (scale > 0, still) == (True, [])
    assert stats.kstest(noise.numpy(), stats.norm(scale=scale).cdf).pvalue > 1e-3
    assert float(noise.std()) == pytest.approx(scale, rel=0.03)


@BOTH
def test_users_are_sampled_at_the_rate_that_the_ledger_states(kind: Kind) -> None:
    """False alarm: one in 1,000."""
    n = kind.module.N_USERS
    model = kind.module.fitted(batch_size=n // 8, epochs=2, epsilon=0.1)
    (entry,), sizes = model.ledger(), []
    (event,) = entry.events
    assert (event.kind, event.count) == ("sampled-gaussian", 16)
    assert event.parameters["sampling_probability"] == 1 / 8
    assert 0.099 < entry.accounted_epsilon <= 0.1
    model.private_step = lambda users, *_: sizes.append(len(users)) or 0.0
    model._plan = model._plan._replace(steps_per_epoch=2000)
    model.train_epoch()
    assert stats.binomtest(sum(sizes), 2000 * n, 1 / 8).pvalue > 1e-3


@BOTH
@pytest.mark.parametrize("more", [0, 900])
def test_the_budget_is_met_by_all_epochs_and_no_less_is_spent_by_fewer(kind: Kind, more: int) -> None:
    """When validation ends training depends on private data."""
    batch_size = kind.module.N_USERS + more
    (full,) = kind.module.fitted(batch_size=batch_size).ledger()
    assert full.claimed_epsilon == 2.0
    assert 1.98 < full.accounted_epsilon <= 2.0
    assert full.accounted_delta == full.claimed_delta == 1e-3
    assert full.events[0].count == 3
    assert kind.module.fitted(batch_size=batch_size, progress=Stretch(2)).ledger() == [full]


@BOTH
def test_all_planned_steps_are_counted_where_weights_of_an_earlier_epoch_are_kept(kind: Kind, tmp_path) -> None:
    """Also of a loaded model of sequences."""
    progress = First()
    model = kind.module.fitted(progress=progress)
    assert all(torch.equal(weight, progress.weights[name]) for name, weight in model.weights().items())
    assert model.ledger()[0].events[0].count == 3
    model.save(tmp_path / "model.safetensors")
    assert kind.module is lists or type(model).load(tmp_path / "model.safetensors").ledger() == model.ledger()
