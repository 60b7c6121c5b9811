"""Audits call the shipped models: sound ones are not refuted by their own ledger's ε, and too little noise is."""

import numpy as np
import pytest

from tasks.audits import AUDITS, auditor, judged
from tasks.privacy import noise
from tasks.privacy.audits.audit import verdict


@pytest.mark.parametrize("name", AUDITS)
def test_a_model_keeps_what_its_ledger_says(name: str) -> None:
    """Each audit accuses a sound model once in a thousand tries."""
    samples = auditor(name)(1)
    assert samples.entry.accounted_epsilon is not None
    assert verdict(judged(samples), samples.entry.accounted_epsilon) == "consistent"


@pytest.mark.parametrize("name", AUDITS)
def test_a_third_of_the_noise_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The positive control: whatever the model draws through the door is three times smaller than it says."""
    gaussian, discrete, by_key = noise.gaussian, noise.discrete_laplace, noise.gaussian_by_key
    monkeypatch.setattr(noise, "gaussian_by_key", lambda key, release, std, *rest: by_key(key, release, std / 3, *rest))
    monkeypatch.setattr(
        noise, "gaussian", lambda rng, release, std, *rest, **more: gaussian(rng, release, std / 3, *rest, **more)
    )
    monkeypatch.setattr(
        noise,
        "discrete_laplace",
        lambda rng, release, success, shape: discrete(rng, release, 1 - (1 - success) ** 3, shape),
    )
    samples = auditor(name)(2)
    assert samples.entry.accounted_epsilon is not None
    assert verdict(judged(samples), samples.entry.accounted_epsilon) == "refuted"


@pytest.mark.parametrize("name", AUDITS)
def test_the_same_seed_gives_the_same_samples(name: str) -> None:
    first, second = auditor(name)(3, 20), auditor(name)(3, 20)
    np.testing.assert_array_equal(first.without, second.without)
    np.testing.assert_array_equal(first.present, second.present)
    assert not np.array_equal(auditor(name)(4, 20).present, first.present)
