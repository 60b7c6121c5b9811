"""Names that other tools call (docs/architecture.md) stay, wherever their code is."""

from importlib import import_module

import pytest

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
