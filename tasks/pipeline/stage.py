"""A kind of stage, as the table lists it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tasks.config.params import Experiment, Suite
from tasks.core.fingerprints import Plugin

DECIDES_NOTHING = True
Items = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Stage:
    """A kind of stage in one dvc.yaml, with all its instances."""

    name: str
    items: Items
    """Instance -> what the strings below need to know of it."""
    deps: tuple[str, ...]
    outs: tuple[str, ...]
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """File -> keys."""
    argument: str = "${key}"
    """What `python -m tasks.stages.MODULE` is called with."""
    runs: str = ""
    """The module of tasks.stages, where it is not called as the stage is."""
    committed: tuple[str, ...] = ()
    """Outputs in git, and so not in DVC's cache; a failed run leaves the last ones where they are."""
    plugins: Callable[[str], Iterable[Plugin]] = lambda _: ()
    """Instance -> the entries of registries that its parameters name: their code counts with the module's."""
    decides: Callable[[str], list[object]] = lambda _: []
    """Instance -> what decides its outputs and DVC does not see: names that outputs have, in their order (DVC compares
    tables without order, 100 is 100.0 to it, but not in a setting's name), and what a user's own files hold."""

    @property
    def module(self) -> str:
        """Of tasks.stages, what runs."""
        return self.runs or self.name.replace("-", "_")


def model(name: str) -> Plugin:
    """The plug-in of a model."""
    return Plugin("tasks.models", "MODELS", name)


def names(experiment: Experiment) -> list[object]:
    """Of settings and seeds, as outputs have them."""
    return [list(experiment.settings()), experiment.seeds]


def inherited_keys(suite: Suite, table: str) -> tuple[str, ...]:
    """What all entries of a table have in common, where a suite's file says so."""
    return (f"defaults.{table}",) if getattr(suite.defaults, table) else ()


def checked(*layers: str) -> tuple[str, ...]:
    """Data `LAYER/NAME` with the verdicts that what reads them waits for."""
    return tuple(f"data/{part}" for layer in layers for part in (layer, f"quality/{layer}.json"))
