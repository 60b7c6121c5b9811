"""Runs tests and audits of changed copies of the source: a process that has imported what they need, and forks.

A script, not a module of the project: it must not have imported `tasks` or `tests`, which its children take from the
copy that they are given. Reads a JSON list a line, [folder, "tests", node ids...] or [folder, "audit", name], and
answers each with a line [exit status, seconds of CPU time, output].
"""

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

PRELOADED = (
    *("numpy.testing", "scipy.stats", "scipy.sparse.linalg", "polars", "pyarrow", "pydantic", "pytest"),
    *("torch", "dp_accounting.pld.privacy_loss_distribution"),
)


def _preload() -> None:
    """What costs seconds to import; none of it knows of the project."""
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)


def _work(folder: str, kind: str, asked: list[str]) -> int:
    os.chdir(folder)
    sys.path[0] = folder
    import tasks

    assert Path(tasks.__path__[0]).parent == Path(folder), "the copy must come first"
    if kind == "tests":
        import pytest

        return int(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", *asked]))
    from tasks.audits import auditor
    from tasks.audits.verdicts import lower_bound

    samples = auditor(asked[0])(1)
    audited = lower_bound(samples)
    accounted = samples.entry.accounted_epsilon
    said = "none" if accounted is None else "refuted" if audited.epsilon > accounted else "not refuted"
    print(json.dumps({"verdict": said, "proved": audited.epsilon, "accounted": accounted}))
    return 0


def _forked(folder: str, kind: str, asked: list[str]) -> tuple[int, float, str]:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            status = 70
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                status = _work(folder, kind, asked)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", flush=True)
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, status, used = os.wait4(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, text


if __name__ == "__main__":
    _preload()
    for line in sys.stdin:
        folder, kind, *asked = json.loads(line)
        print(json.dumps(_forked(folder, kind, asked)), flush=True)
