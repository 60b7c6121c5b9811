"""`dprec` in the process of a test, without the seconds that loading libraries takes in one of its own."""

import io
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import pytest

from flows import cli
from flows.stopping import SIGNALS


def dprec(folder: Path, *arguments: str, environment: Mapping[str, str] = os.environ) -> CompletedProcess[str]:
    """Call the command in a folder; signals, umask and environment are then what they were.

    environment: what the command sees, as a process of its own would.
    """
    out, errors = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    mask = os.umask(0o022)  # as most people have it
    try:
        with (
            chdir(folder),
            redirect_stdout(out),
            redirect_stderr(errors),
            patch.dict(os.environ, dict(environment), clear=True),
            patch.object(sys, "argv", ["dprec", *arguments]),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main()
    finally:
        os.umask(mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return CompletedProcess(arguments, int(ended.value.code or 0), out.getvalue(), errors.getvalue())
