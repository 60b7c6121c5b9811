"""Stage `align`: the two networks of a pair aligned in several ways, all settings and seeds of their embeddings.

Writes data/aligned/<name>/<setting>/seed-<S>/anchors.parquet (who is whom, as the way named in the suite's params.yaml
finds it; systems that learn from both networks read it) and data/runs/<suite>/alignments/<name>/: metrics.parquet (what
each way is worth, judged on anchors that none is given), history.json (how maps were found) and inputs.json. Every
seed has one adversarial start of its own, good or bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from typing_extensions import override

from tasks.attacks.embeddings.anchors import chance_records, evaluate
from tasks.config.messages import options
from tasks.config.networks import Alignment
from tasks.config.params import Params, own_file
from tasks.core import contracts
from tasks.evaluation.alignment import AlignmentResult, Anchors
from tasks.models.alignment.aligner import (
    Aligner,
    AlignmentConfig,
    by_attributes,
    from_anchors,
    from_attributes,
    from_start,
)
from tasks.pipeline.common import RUNS, copy, write_json
from tasks.pipeline.jobs import SeedJob
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import SeedUnit, write_results
from tasks.pipeline.screen import Screen
from tasks.stages.align_inputs import Inputs, locate
from tasks.stages.network_files import ALIGNED

STREAM, STREAM_OF_CYCLE = 0xA119, 0xC7C1E
"""Of either start's randomness: the embeddings' own seeds its generator with the seed alone."""


class Alignments(SeedJob[Alignment]):
    """A unit is one setting with one seed, aligned in all ways and judged."""

    stage, section = "align", "aligned"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        file, embeddings = own_file(self.options.suite), self.options.embeddings
        self.config = options(AlignmentConfig, self.options.config, f"aligned.{name}.config", file)
        self.reads = {self.data: self.options.of}
        self.released, self.output = ALIGNED / name, RUNS / self.options.suite / "alignments" / name
        self.system = "attributes" if embeddings is None else params.embeddings[embeddings].model

    @override
    def plan(self) -> Iterator[SeedUnit]:
        decided = self.options.model_dump(mode="json", exclude={"seeds"})
        for (setting, seed), inputs in locate(self.options, self.params).items():
            yield self.unit(setting, seed, inputs, decided, seed, inputs.digest, self.code)

    @override
    def run(self, unit: SeedUnit, path: Path, screen: Screen) -> None:
        anchors, sizes, chosen = unit.inputs.anchors(self.options), unit.inputs.sizes, self.options.anchors
        alignments = self._attempts(unit, anchors, screen)
        pairs = anchors.known if chosen == "truth" else alignments[chosen].pairs
        rows = chance_records(self.options.k, sizes[1])
        for name, alignment in alignments.items():
            rows += evaluate(name, alignment, anchors, sizes, self.options.k, unit.seed)
        table = pl.DataFrame(pairs, schema={"source": pl.Int32, "target": pl.Int32}).sort("source")
        contracts.write(table, path / "anchors.parquet", contracts.ANCHORS)
        write_results(path, metrics=rows, history={name: way.history for name, way in alignments.items()})

    def _attempts(self, unit: SeedUnit, anchors: Anchors, screen: Screen) -> dict[str, AlignmentResult]:
        """What each way finds, by its name. Of the anchors they are given none that judges."""
        alignments, inputs = dict[str, AlignmentResult](), cast("Inputs", unit.inputs)
        if {"attributes", "attribute-start"} & set(self.options.ways):
            by = by_attributes(*inputs.read_attributes(), self.config.tie_seed)
            if "attributes" in self.options.ways:
                alignments["attributes"] = by
        if not set(self.options.all_ways) - {"attributes"}:
            return alignments
        aligner = Aligner(self.config, *inputs.read_vectors())
        if "adversarial" in self.options.ways:
            start = aligner.start(np.random.default_rng([unit.seed, STREAM]))
            start.train(Monitor(unit.progress, screen, unit.label, metric="criterion"))
            alignments["adversarial"] = from_start(aligner, start)
        if "cycle" in self.options.ways:
            rng = np.random.default_rng([unit.seed, STREAM_OF_CYCLE])
            coded = aligner.coded(rng)
            monitor = Monitor(unit.progress / "cycle", screen, f"{unit.label}, cycle", metric="criterion")
            alignments["cycle"] = from_start(coded, coded.cycle_start(rng).train(monitor))
        if "attribute-start" in self.options.ways:
            alignments["attribute-start"] = from_attributes(aligner, by)
        for name, share in self.options.shares.items():
            alignments[name] = from_anchors(aligner, anchors.known_share(share))
        return alignments

    @override
    def release(self, unit: SeedUnit, folder: Path) -> None:
        copy(unit.done / "anchors.parquet", folder / unit.setting / f"seed-{unit.seed}" / "anchors.parquet")

    @override
    def write(self, units: list[SeedUnit], path: Path) -> dict[str, object]:
        self.write_metrics(units, path)
        write_json(path / "history.json", self.history(units))
        anchors = units[0].inputs.anchors(self.options)
        counts = {
            "true": len(anchors.true),
            "judging": len(anchors.test),
            "known": len(anchors.known),
            "left_out": len(anchors.true) - anchors.n_usable,  # because a user is in several
        }
        return {"anchors": counts}


work, main = Alignments.commands(__name__)
