"""Stage `align`: the two networks of a pair aligned in several ways, all settings and seeds of their embeddings.

Writes data/aligned/<name>/<setting>/seed-<S>/anchors.parquet (who is whom, as the way named in the suite's params.yaml
finds it; systems that learn from both networks read it) and data/runs/<suite>/alignments/<name>/: metrics.parquet (what
each way is worth, judged on anchors that none is given), history.json (how maps were found) and inputs.json. Every
seed has one adversarial start of its own, good or bad. Finished settings and seeds, and every epoch of an adversarial
start, are kept under data/checkpoints/aligned/.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.torch import load_file, save_file

from tasks import contracts
from tasks.attacks.embeddings.anchors import chance_records, evaluate
from tasks.config.messages import options
from tasks.config.params import Params, entry, own_file
from tasks.errors import DataError
from tasks.evaluation.alignment import AlignmentResult, Anchors
from tasks.models.alignment.adversarial import AdversarialStart
from tasks.models.alignment.aligner import (
    Aligner,
    AlignmentConfig,
    by_attributes,
    finite_or_none,
    from_anchors,
    from_attributes,
    from_start,
)
from tasks.stages import runs
from tasks.stages.align_inputs import Inputs, locate
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, copy, read_json, require_inputs, write_json
from tasks.stages.jobs import Job
from tasks.stages.network_files import ALIGNED
from tasks.stages.screen import Screen

STREAM, STREAM_OF_CYCLE = 0xA119, 0xC7C1E
"""Of either start's randomness: the embeddings' own seeds its generator with the seed alone."""


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One setting with one seed: what is aligned and judged at a time."""

    inputs: Inputs


class Alignments(Job[Unit]):
    """What aligning entry `name` of `aligned` consists of."""

    stage = "align"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.pair = entry("aligned", name, params.aligned)
        file = own_file(self.pair.suite)
        self.config = options(AlignmentConfig, self.pair.config, f"aligned.{name}.config", file)
        self.inputs, self.kept = locate(self.pair, params), CHECKPOINTS / "aligned" / name

    def checks(self) -> list[dict[str, Any]]:
        """Those of all that is read."""
        return require_inputs(self.pair.data, self.pair.of, self.pair.suite)

    def plan(self) -> Iterator[Unit]:
        """Every setting and seed."""
        decided = self.pair.model_dump(mode="json", exclude={"seeds"})
        for (setting, seed), read in self.inputs.items():
            label = f"{setting}-seed-{seed}"
            folder = runs.folder_of(self.kept, label, decided, seed, read.digest, self.code)
            yield Unit(label, folder, setting, seed, read)

    def run(self, unit: Unit, folder: Path, screen: Screen) -> None:
        """Align one setting and seed in all ways, judge it, and write the results into `folder`."""
        anchors, sizes = unit.inputs.anchors(self.pair), unit.inputs.sizes
        alignments = self._attempts(unit, anchors, screen)
        pairs = anchors.known if self.pair.anchors == "truth" else alignments[self.pair.anchors].pairs
        rows = chance_records(self.pair.k, sizes[1])
        for name, alignment in alignments.items():
            rows += evaluate(name, alignment, anchors, sizes, self.pair.k, unit.seed)
        table = pl.DataFrame(pairs, schema={"source": pl.Int32, "target": pl.Int32}).sort("source")
        contracts.write(table, folder / "anchors.parquet", contracts.ANCHORS)
        write_json(folder / "metrics.json", rows)
        write_json(folder / "history.json", {name: alignment.history for name, alignment in alignments.items()})

    def _attempts(self, unit: Unit, anchors: Anchors, screen: Screen) -> dict[str, AlignmentResult]:
        """What each way finds, by its name. Of the anchors they are given none that judges."""
        alignments: dict[str, AlignmentResult] = {}
        if {"attributes", "attribute-start"} & set(self.pair.ways):
            by = by_attributes(*unit.inputs.read_attributes(), self.config.tie_seed)
            if "attributes" in self.pair.ways:
                alignments["attributes"] = by
        if not set(self.pair.all_ways) - {"attributes"}:
            return alignments
        aligner = Aligner(self.config, *unit.inputs.read_vectors())
        if "adversarial" in self.pair.ways:
            start = run(aligner.start(np.random.default_rng([unit.seed, STREAM])), unit.label, unit.progress, screen)
            alignments["adversarial"] = from_start(aligner, start)
        if "cycle" in self.pair.ways:
            rng = np.random.default_rng([unit.seed, STREAM_OF_CYCLE])
            coded = aligner.coded(rng)
            start = run(coded.cycle_start(rng), f"{unit.label}, cycle", unit.progress / "cycle", screen)
            alignments["cycle"] = from_start(coded, start)
        if "attribute-start" in self.pair.ways:
            alignments["attribute-start"] = from_attributes(aligner, by)
        for name, share in self.pair.shares.items():
            alignments[name] = from_anchors(aligner, anchors.known_share(share))
        return alignments

    def assemble(self, units: list[Unit], checks: list[dict[str, Any]]) -> None:
        """Put the finished units together as the stage's output."""
        with atomic_write(ALIGNED / self.name) as folder:
            for unit in units:
                copy(unit.done / "anchors.parquet", folder / unit.setting / f"seed-{unit.seed}" / "anchors.parquet")
        with atomic_write(RUNS / self.pair.suite / "alignments" / self.name) as folder:
            folder.mkdir()
            rows = runs.read_records(units, "metrics.json")
            embeddings = self.pair.embeddings
            model = "attributes" if embeddings is None else self.params.embeddings[embeddings].model
            runs.write_metrics(rows, folder, self.pair.suite, self.name, self.pair.data, model)
            write_json(folder / "history.json", runs.by_setting(units, "history.json"))
            anchors = units[0].inputs.anchors(self.pair)
            counts = {
                "true": len(anchors.true),
                "judging": len(anchors.test),
                "known": len(anchors.known),
                "left_out": len(anchors.true) - anchors.n_usable,  # because a user is in several
            }
            runs.write_inputs(folder, self.pair.data, checks, anchors=counts)


def run(start: AdversarialStart, label: str, folder: Path, screen: Screen) -> AdversarialStart:
    """The start after all of its epochs; those that were finished in `folder` are not run again."""
    screen.begin(label, start.config.epochs)
    progress, before = runs.Progress(folder), time.monotonic()
    resume(start, progress)

    def after_epoch(start: AdversarialStart) -> bool:
        """Keep the state, and show it."""
        nonlocal before
        tensors, state = start.state()
        state |= {name: finite_or_none(state[name]) for name in ("criteria", "losses")}
        with progress.write() as target:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, target / "state.safetensors")
            write_json(target / "state.json", state)
        done, now = len(start.criteria), time.monotonic()
        left = (start.config.epochs - done) * (now - before)
        screen.step(done, f"loss {start.losses[-1]:.4f}  criterion {start.criteria[-1]:.4f}", left)
        before = now
        return True

    return start.train(after_epoch)


def resume(start: AdversarialStart, progress: runs.Progress) -> None:
    """Go on from the last state that can be used, if there is one."""

    def read(folder: Path) -> None:
        tensors, state, fresh = load_file(folder / "state.safetensors"), read_json(folder / "state.json"), start.state()
        for name, diverged in (("criteria", -np.inf), ("losses", np.nan)):
            state[name] = [diverged if value is None else float(value) for value in state[name]]
        if not len(state["criteria"]) == len(state["losses"]) > 0:
            raise DataError("its criteria are of other epochs than its losses")
        try:
            start.load_state(tensors, state)
        except Exception:
            start.load_state(*fresh)
            raise

    progress.restore(read)


work, main = Alignments.work, Alignments.main

if __name__ == "__main__":
    run_stage(main, units=True)
