"""Programs that tests run: Python, git, and `dprec` in this process, which saves the time that its libraries load."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import pytest

from flows import cli
from flows.stopping import SIGNALS
from tests.parameters import ROOT


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


def python(code: str, **environment: str) -> str:
    """What a fresh process prints that runs this code in the project's folder."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True
    ).stdout


def git(folder: Path, *arguments: str) -> str:
    """What git prints, which commits as a test."""
    known = ["git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", *arguments]
    return subprocess.run(known, cwd=folder, check=True, capture_output=True, text=True).stdout
