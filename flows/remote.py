"""What a worker of a cluster does: one unit, from inputs of a shared store to results in it.

The worker needs the project's environment (a clone at the driver's revision, in whose folder it is started) and the
store; nothing else. Parameters and data come from the store; the code is its own. Where that gives the unit another key
than the driver's has, it is refused.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path, PurePosixPath

from flows.store import Store, line_of
from tasks.disk import rename
from tasks.stages.parent import end_with

CODE = Path(__file__).resolve().parents[1]


def work_on(store: str, inputs: str, module: str, argument: str, label: str, folder: str, force: str) -> dict[str, str]:
    """Work on one unit and put its results into the store.

    Args:
        store: address of the store.
        inputs: the list of its inputs there.
        module, argument: of the stage: `python -m tasks.stages.MODULE ARGUMENT`.
        label, folder: of the unit, as the driver has them; the folder's name is its key.
        force: "1": also if it is finished.

    Returns:
        `worker` (the machine), and `seconds`, or `error`, why there are no results.
    """
    os.umask(0o077)  # rows of users
    start = time.monotonic()
    answer = {"worker": socket.gethostname()}
    try:
        shared = Store(store)
        project = _project(shared, inputs)
        command = [sys.executable, "-m", "tasks.stages.units", module, argument, "--unit", label, "--key"]
        command += [PurePosixPath(folder).name, *(["--force"] if force else [])]
        done = subprocess.run(
            command,
            cwd=project,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
            preexec_fn=partial(end_with, os.getpid()),
        )
        if done.returncode != 0:
            return answer | {"error": _reason(done.stdout, done.returncode)}
        shared.put_unit(project / folder / "done", folder)
    except Exception as error:  # stores have errors of their own kinds
        return answer | {"error": line_of(error)}
    return answer | {"seconds": f"{time.monotonic() - start:.1f}"}


def environment() -> dict[str, str]:
    """Of a unit: the worker's, with nothing of Prefect's, and the code of the folder that it was started in."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
    path = [str(Path.cwd()), str(CODE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


def _project(store: Store, inputs: str) -> Path:
    """A folder with these inputs, which units that have the same ones share."""
    parent = _folder() / "dprec"
    parent.mkdir(parents=True, exist_ok=True)
    project = parent / inputs
    if not project.is_dir():
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            target = Path(folder) / "project"
            target.mkdir()
            store.get_files(inputs, target)
            try:
                rename(target, project, durable=False)
            except OSError:  # another unit of this worker was faster
                if not project.is_dir():
                    raise
    return project


def _folder() -> Path:
    """Of this worker, which Dask removes with it."""
    from distributed import get_worker

    return Path(get_worker().local_directory)


def _reason(output: str, code: int) -> str:
    if code < 0:
        return f"killed by signal {-code} (out of memory?)"
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"ended with code {code}"
