"""`python -m tests.flows.killed_init FOLDER`: kill `dprec init shop` before each of its writes, then try it again.

FOLDER has a project with a suite `other`, and ratings.csv. Each step has a copy of it, and forks of its own: no process
that has used polars can be forked.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flows.own_data import begin
from tasks.config import params
from tasks.config.references import check
from tasks.core.errors import ConfigurationError
from tasks.external.reading import Names
from tasks.pipeline import dvc_files

OPENS_TO_WRITE = os.O_WRONLY | os.O_RDWR
KILLED = int(-signal.SIGKILL)


def is_write(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an event of `sys.addaudithook` changes something on the disk, locks aside."""
    path = str(arguments[0]) if arguments else ""
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & OPENS_TO_WRITE) and ".lock" not in path
    if event == "os.mkdir":
        return not os.path.lexists(path)
    if event in ("os.remove", "os.rmdir"):
        return arguments[1] != -1 or os.path.lexists(path)  # a name in an open folder is there
    return event == "os.rename" and os.path.lexists(path)


def init(killed_before: int) -> None:
    """`dprec init shop`; before its write of that number, the process is killed."""
    left = killed_before

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if is_write(event, arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    begin("shop", Path("ratings.csv"), None, Names())


def again() -> None:
    """After the kill every other suite can run, and the same command succeeds unless it had done everything."""
    loaded = params.load()
    check(loaded)
    assert "other" in loaded.suites
    try:
        begin("shop", Path("ratings.csv"), None, Names())
    except ConfigurationError:
        assert (Path("suites/shop/params.yaml")).is_file(), "only what is complete is not begun again"
        dvc_files.write(params.load())  # as every command does
    loaded = params.load()
    check(loaded)
    assert {"other", "shop"} <= loaded.suites.keys()
    assert dvc_files.outdated_files(loaded) == {}
    assert params.PARAMS_FILE.read_text().count("\n  shop:") == 2


def in_fork(work: Callable[[], None]) -> int:
    """How a fork that does this ends."""
    if (process := os.fork()) == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(project: Path) -> None:
    """Print how many steps there are; exit code 1 if what follows one of them goes wrong."""
    os.chdir(project)
    check(params.load())  # the forks have all modules then
    number, ended = 0, KILLED
    while ended == KILLED:
        number += 1
        ended = attempt(project, number)
    assert ended == 0, ended
    print(number - 1)


def attempt(project: Path, number: int) -> int:
    """How a call ends that is killed before a write, in a copy of the project; and `again`."""
    os.chdir(place := shutil.copytree(project, project.with_name(f"killed-{number}")))
    ended = in_fork(partial(init, number))
    if in_fork(again):
        raise SystemExit(f"killed before write {number}: {sorted(str(path) for path in place.rglob('*'))}")
    return ended


if __name__ == "__main__":
    main(Path(sys.argv[1]))
