"""Stage `align`: the two networks of a pair aligned in several ways, all settings and seeds of their embeddings.

Writes data/aligned/<name>/<setting>/seed-<S>/anchors.parquet (who is whom, as the way named in the suite's params.yaml
finds it; systems that learn from both networks read it) and data/runs/<suite>/alignments/<name>/: metrics.parquet (what
every way is worth, judged on anchors that none is given), history.json (how maps were found) and inputs.json. Every
seed has one adversarial start of its own, good or bad. Finished settings and seeds, and every epoch of an adversarial
start, are kept under data/checkpoints/aligned/.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from safetensors.torch import load_file, save_file

from tasks import contracts
from tasks.attacks.embeddings.anchors import chance_records, evaluate
from tasks.config.messages import options
from tasks.config.networks import Alignment
from tasks.config.params import Params, entry, load, own_file
from tasks.errors import DataError
from tasks.evaluation.alignment import AlignmentResult, Anchors
from tasks.models.alignment.adversarial import AdversarialStart
from tasks.models.alignment.aligner import Aligner, AlignmentConfig
from tasks.models.alignment.ways import by_attributes, finite_or_none, from_anchors, from_attributes, from_start
from tasks.stages import runs
from tasks.stages.align_inputs import Inputs, locate
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, read_json, require_inputs, write_json
from tasks.stages.network_files import ALIGNED
from tasks.stages.runs import Progress
from tasks.stages.screen import Screen

KEPT = CHECKPOINTS / "aligned"
STREAM, STREAM_OF_CYCLE = 0xA119, 0xC7C1E
"""Of either start's randomness: the embeddings' own seeds its generator with the seed alone."""


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One setting with one seed: what is aligned and judged at a time."""

    inputs: Inputs


def work(name: str) -> runs.Work[Unit]:
    """What aligning entry `name` of `aligned` consists of.

    Raises:
        ConfigurationError: params.yaml has no such name, or asks for what cannot be done.
        DataError: an input is missing, did not pass its check, or is not what its contract says.
    """
    torch.set_num_threads(1)
    params = load()
    pair = entry("aligned", name, params.aligned)
    inputs = locate(pair, params)
    config = options(AlignmentConfig, pair.config, f"aligned.{name}.config", own_file(pair.suite))
    checks = require_inputs(pair.data, pair.of, pair.suite)
    units = plan(name, pair, inputs, fingerprint("align", name, params))
    return runs.Work(
        title=f"align {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, pair, config, place, screen),
        assemble=lambda: assemble(name, pair, params, units, checks),
        kept=KEPT / name,
    )


def plan(name: str, pair: Alignment, inputs: dict[tuple[str, int], Inputs], code: str) -> list[Unit]:
    """Every setting and seed of an entry.

    Raises:
        DataError: an input is missing.
    """
    decided, units = pair.model_dump(mode="json", exclude={"seeds"}), []
    for (setting, seed), read in inputs.items():
        label = f"{setting}-seed-{seed}"
        folder = runs.folder_of(KEPT / name, label, decided, seed, read.digest, code)
        units.append(Unit(label, folder, setting, seed, read))
    return units


def complete(unit: Unit, pair: Alignment, config: AlignmentConfig, place: Path, screen: Screen) -> None:
    """Align one setting and seed in every way, judge it, and write the results below `place`."""
    anchors = unit.inputs.anchors(pair)
    alignments = attempts(unit, pair, config, anchors, screen)
    pairs = anchors.known if pair.anchors == "truth" else alignments[pair.anchors].pairs
    sizes = unit.inputs.sizes
    rows = chance_records(pair.k, sizes[1])
    for way, alignment in alignments.items():
        rows += evaluate(way, alignment, anchors, sizes, pair.k, unit.seed)
    table = pl.DataFrame(pairs, schema={"source": pl.Int32, "target": pl.Int32}).sort("source")
    contracts.write(table, place / "anchors.parquet", contracts.ANCHORS)
    write_json(place / "metrics.json", rows)
    write_json(place / "history.json", {way: alignment.history for way, alignment in alignments.items()})


def attempts(
    unit: Unit, pair: Alignment, config: AlignmentConfig, anchors: Anchors, screen: Screen
) -> dict[str, AlignmentResult]:
    """What every way finds: by its name. Of the anchors they are given none that judges."""
    alignments: dict[str, AlignmentResult] = {}
    if {"attributes", "attribute-start"} & set(pair.ways):
        by = by_attributes(*unit.inputs.read_attributes(), config.tie_seed)
        if "attributes" in pair.ways:
            alignments["attributes"] = by
    if not set(pair.all_ways) - {"attributes"}:
        screen.skip()
        return alignments
    source, target = unit.inputs.read_vectors()
    aligner = Aligner(config, source, target)
    if not {"adversarial", "cycle"} & set(pair.ways):
        screen.skip()
    if "adversarial" in pair.ways:
        start = run(aligner.start(np.random.default_rng([unit.seed, STREAM])), unit.label, unit.progress, screen)
        alignments["adversarial"] = from_start(aligner, source, target, start)
    if "cycle" in pair.ways:
        rng = np.random.default_rng([unit.seed, STREAM_OF_CYCLE])
        coded = aligner.coded(source, target, rng)
        start = run(coded.cycle_start(rng), f"{unit.label}, cycle", unit.progress / "cycle", screen)
        alignments["cycle"] = from_start(coded, source, target, start)
    if "attribute-start" in pair.ways:
        alignments["attribute-start"] = from_attributes(aligner, source, target, by)
    for way, share in pair.shares.items():
        alignments[way] = from_anchors(aligner, source, target, anchors.known_share(share))
    return alignments


def run(start: AdversarialStart, label: str, place: Path, screen: Screen) -> AdversarialStart:
    """The start after all of its epochs; those that were finished in `place` are not run again."""
    screen.begin(label, start.config.epochs)
    progress = Progress(place)
    resume(start, progress)
    return start.train(after_epoch(progress, screen))


def resume(start: AdversarialStart, progress: Progress) -> None:
    """Go on from the last state that can be used, if there is one."""

    def read(state: Path) -> None:
        tensors, rest, fresh = load_file(state / "state.safetensors"), read_json(state / "state.json"), start.state()
        for name, diverged in (("criteria", -np.inf), ("losses", np.nan)):
            rest[name] = [diverged if value is None else float(value) for value in rest[name]]
        if not len(rest["criteria"]) == len(rest["losses"]) > 0:
            raise DataError("its criteria are of other epochs than its losses")
        try:
            start.load_state(tensors, rest)
        except Exception:
            start.load_state(*fresh)
            raise

    progress.restore(read)


def after_epoch(progress: Progress, screen: Screen) -> Callable[[AdversarialStart], bool]:
    """What is done after every epoch of an adversarial start: its state is kept, and it is shown."""
    before = time.monotonic()

    def keep(start: AdversarialStart) -> bool:
        nonlocal before
        tensors, rest = start.state()
        rest |= {name: finite_or_none(rest[name]) for name in ("criteria", "losses")}
        with progress.write() as place:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, place / "state.safetensors")
            write_json(place / "state.json", rest)
        done, now = len(start.criteria), time.monotonic()
        left = (start.config.epochs - done) * (now - before)
        screen.epoch(done, start.losses[-1], f"criterion {start.criteria[-1]:.4f}", left)
        before = now
        return True

    return keep


def assemble(name: str, pair: Alignment, params: Params, units: list[Unit], checks: list[dict[str, Any]]) -> None:
    """Put the finished units together as the stage's output."""
    with atomic_write(ALIGNED / name) as place:
        place.mkdir()
        for unit in units:
            folder = place / unit.setting / f"seed-{unit.seed}"
            folder.mkdir(parents=True)
            shutil.copy(unit.done / "anchors.parquet", folder)
    with atomic_write(RUNS / pair.suite / "alignments" / name) as place:
        place.mkdir()
        model = "attributes" if pair.embeddings is None else params.embeddings[pair.embeddings].model
        runs.write_metrics(runs.read_records(units, "metrics.json"), place, pair.suite, name, pair.data, model)
        write_json(place / "history.json", runs.by_setting(units, "history.json"))
        anchors = units[0].inputs.anchors(pair)
        counts = {
            "true": len(anchors.true),
            "judging": len(anchors.test),
            "known": len(anchors.known),
            "left_out": len(anchors.true) - anchors.n_usable,  # because a user is in several
        }
        runs.write_inputs(place, pair.data, checks, anchors=counts)


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
