"""`python -m tasks.stages.STAGE NAME`: what every stage does before and after its own work."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tasks.pipeline.common import private
from tasks.pipeline.keys import require_current
from tasks.pipeline.last_words import one_line
from tasks.pipeline.parent import RUN
from tasks.pipeline.provenance import record


def run_stage(main: Callable[..., dict[str, object] | None], *, units: bool = False) -> None:
    """Run `main(name)` for `python -m tasks.stages.STAGE NAME`: errors become one line and exit code 1.

    What is to be known of the run, and what `main` measured of it and returns, goes to data/provenance/. A stage with
    units has it recorded while no other process replaces its outputs.

    With `--debug` (or DPREC_DEBUG=1 in the environment) the traceback is shown as well.

    Args:
        units: the stage has units of work (`tasks.pipeline.runs`), which may be run alone (`main(name, unit=LABEL)`;
            with `key=KEY` there need be no code.json) or again (`main(name, force=True)`, also with DPREC_FORCE=1 in
            the environment; with a time: those that were finished before that); `main(name, record=...)`.
    """
    stage = Path(sys.argv[0]).stem
    parser = ArgumentParser(f"python -m tasks.stages.{stage}")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--debug", action="store_true", default=os.environ.get("DPREC_DEBUG") == "1")
    if units:
        parser.add_argument("--unit", metavar="LABEL")
        parser.add_argument("--key", metavar="KEY")
        forced = os.environ.get("DPREC_FORCE") == "1"
        parser.add_argument("--force", metavar="TIME", nargs="?", type=float, const=True, default=forced)
    chosen = vars(parser.parse_args())
    name, debug = chosen.pop("name"), chosen.pop("debug")
    keyed = chosen.get("unit") and chosen["key"]
    prefix = "" if keyed or RUN in os.environ else f"{stage} {name}: "  # a run names its stages itself
    private()
    keep = partial(record, stage.replace("_", "-"), name, time.time())
    try:
        if not keyed:  # which holds the code's fingerprint
            require_current(stage, name)
        if units:
            main(name, **chosen, record=keep)
        else:
            keep(main(name) or {})
    except KeyboardInterrupt:
        print(f"{prefix}interrupted; run it again to go on where it stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except BaseException as error:  # a panic of polars is no Exception
        if debug or isinstance(error, SystemExit):
            raise
        print(f"{prefix}{one_line(error)}", file=sys.stderr)
        raise SystemExit(1) from None
