"""`dprec audit` in the process of a test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from flows import cli
from flows.stopping import SIGNALS


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., CompletedProcess[str]]:
    """`dprec audit` as in a process of its own, without the seconds that loading libraries takes there."""

    def call(folder: Path, *arguments: str) -> CompletedProcess[str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["dprec", "audit", *arguments])
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        mask = os.umask(0o077)
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            os.umask(mask)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        said = capsys.readouterr()
        return CompletedProcess(arguments, int(ended.value.code or 0), said.out, said.err)

    return call
