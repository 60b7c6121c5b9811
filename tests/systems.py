"""What is held to what every model promises: all models, and all systems that the suites make of them."""

from collections.abc import Iterable
from functools import cache

from tasks.config.params import load
from tasks.models import MODELS, model_class
from tasks.models.base import Model
from tasks.privacy.remarks import Term
from tests.parameters import ROOT


@cache
def systems() -> dict[str, str]:
    """System -> model: the models themselves, then the systems of the suites."""
    result = {name: name for name in MODELS}
    for name, experiment in load(ROOT / "params.yaml").experiments.items():
        assert result.setdefault(experiment.system, experiment.model) == experiment.model, name
    return result


def system_class(name: str) -> type[Model]:
    return model_class(systems()[name])


def ids(terms: Iterable[Term]) -> set[str]:
    """Of gaps or reasons, whatever their sentences name."""
    return {term.id for term in terms}
