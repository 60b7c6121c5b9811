"""Names that other tools call (docs/architecture.md) stay, wherever their code is."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from tasks.privacy.mechanisms import piecewise
from tests.parameters import ROOT


@pytest.mark.parametrize(
    "name",
    [
        "piecewise.perturb",
        "unary.perturb",
        "functional.noise_scale",
        "aggregation.epsilon",
        "aggregation.sigma",
        "edges.top_m_filter",
        "words.substitute",
    ],
)
def test_the_name_is_there_and_documented(name: str) -> None:
    module, _, function = name.partition(".")
    assert callable(getattr(import_module(f"tasks.privacy.{module}"), function))
    assert f"`tasks.privacy.{name}(" in (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_it_is_the_same_mechanism() -> None:
    values = np.linspace(-1, 1, 9)
    by_short_name = import_module("tasks.privacy.piecewise")
    first = by_short_name.perturb(values, 1.0, np.random.default_rng(0))
    assert first.tolist() == piecewise.perturb(values, 1.0, np.random.default_rng(0)).tolist()
