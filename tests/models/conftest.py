"""Noise under a test's control."""

import pytest

from tasks.models.base import Model
from tasks.privacy import noise


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits with the same seed draw the same noise, so that what differs is what data or configuration change."""
    monkeypatch.setattr(Model, "noise_stream", lambda self, data, rng: noise.stream(rng, "the same"))  # noqa: ARG005


@pytest.fixture
def one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever hides something is drawn as if it hid nothing: private training takes the steps of public training."""
    monkeypatch.setattr(Model, "noise_stream", lambda self, data, rng: rng)  # noqa: ARG005
