"""Puts planted bugs into copies of the source, one at a time, and sees which tests and audits notice."""

import compileall
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

from tests.privacy.planted.mutation import ROOT, Mutation

COPIED, LINKED = (
    ("tasks", "tests", "flows", "pyproject.toml", "params.yaml"),
    ("docs", "suites", "data/reference", "data/results"),
)
REMEMBERED = ROOT / ".planted" / "runs.json"
"""What was run, so that an interrupted run goes on; not in the repository."""
Kind = Literal["tests", "audit"]


@dataclass(frozen=True)
class Run:
    """What tests or an audit said of one copy."""

    status: int
    """Of pytest: 0 all passed, 1 a test failed; of an audit 0."""
    seconds: float
    """CPU time."""
    output: str
    verdict: str = ""
    """`refuted`, `not refuted`, or `none` where the ledger has no finite ε; empty for tests."""
    proved: float = 0.0
    accounted: float | None = None

    @property
    def noticed(self) -> bool:
        """Whether a test failed, or the audit refuted the ledger."""
        return self.verdict == "refuted" if self.verdict else self.status == 1

    @property
    def broken(self) -> bool:
        """Whether pytest or the audit did not come to its end: then nothing is known."""
        return self.status not in (0, 1) or (self.status == 1 and " error" in self.output.splitlines()[-1])


@dataclass(frozen=True)
class Asked:
    """Tests or an audit to be run on the source with a bug in it, or as it is."""

    kind: Kind
    names: tuple[str, ...]
    mutation: Mutation | None = None

    def key(self, source: str) -> str:
        """What decides the answer; source: digest of the project's code."""
        files = sorted({name.partition("::")[0] for name in self.names}) if self.kind == "tests" else []
        parts = [source, self.kind, *self.names, *((ROOT / file).read_text(encoding="utf-8") for file in files)]
        if self.mutation:
            parts += [self.mutation.file, self.mutation.old, self.mutation.new]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Copy:
    """A copy of the source and a process that runs tests and audits on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, folder / name)
        for name in LINKED:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(ROOT / name)
        # by the text's digest, so that a module that changes twice in a second is read twice
        for name in ("tasks", "flows"):
            compileall.compile_dir(
                folder / name, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
            )
        own = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "GX_ANALYTICS_ENABLED": "false"}
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
        )  # fmt: skip

    def run(self, asked: Asked) -> Run:
        """The answer; the copy is as it was afterwards.

        Raises:
            ValueError: the bug's piece of code is not there once.
        """
        mutation = asked.mutation
        if mutation:
            (self.folder / mutation.file).write_text(mutation.mutated(), encoding="utf-8")
        try:
            print(json.dumps([str(self.folder), asked.kind, *asked.names]), file=self._server.stdin, flush=True)
            status, seconds, output = json.loads(self._server.stdout.readline())
        finally:
            if mutation:
                shutil.copy(ROOT / mutation.file, self.folder / mutation.file)
        said = json.loads(output.splitlines()[-1]) if asked.kind == "audit" and not status else {}
        return Run(status, round(seconds, 1), output[-4000:], **said)

    def close(self) -> None:
        """End the process."""
        self._server.stdin.close()
        self._server.wait()


@contextmanager
def _copies(count: int) -> Iterator[SimpleQueue[Copy]]:
    free: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="planted-") as place:
        copies = []
        for number in range(count):
            folder = Path(place).resolve() / str(number)
            folder.mkdir()
            copies.append(Copy(folder))
            free.put(copies[-1])
        try:
            yield free
        finally:
            for copy in copies:
                copy.close()


def run(asked: Sequence[Asked], jobs: int = 2) -> dict[Asked, Run]:
    """All answers, those that are remembered at once."""
    sources: dict[Kind, str] = {"tests": digest(with_audits=False), "audit": digest(with_audits=True)}
    remembered: dict[str, dict[str, Any]] = {}
    if REMEMBERED.exists():
        remembered = json.loads(REMEMBERED.read_text(encoding="utf-8"))
    keys = {question: question.key(sources[question.kind]) for question in asked}
    left = [question for question in asked if keys[question] not in remembered]
    if left:
        with _copies(min(jobs, len(left))) as free, ThreadPoolExecutor(jobs) as pool:

            def answer(question: Asked) -> Run:
                copy = free.get()
                try:
                    return copy.run(question)
                finally:
                    free.put(copy)

            for number, (question, given) in enumerate(zip(left, pool.map(answer, left), strict=True), 1):
                remembered[keys[question]] = asdict(given)
                _remember(remembered)
                what = question.mutation.name if question.mutation else "control"
                said = given.verdict or ("failed" if given.status == 1 else "passed" if not given.status else "BROKEN")
                print(f"{number}/{len(left)} {what}: {question.kind} {said} ({given.seconds:g} s)", flush=True)
    return {question: Run(**remembered[keys[question]]) for question in asked}


def digest(*, with_audits: bool) -> str:
    """Of all code of the project, or all but the audits of models, which no test of a bug calls."""
    total = hashlib.sha256()
    for path in sorted((ROOT / "tasks").rglob("*.py")):
        if with_audits or path.parent != ROOT / "tasks" / "audits":
            total.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def asked_of(mutations: Iterable[Mutation]) -> list[Asked]:
    """Tests of the source as it is, and with every bug; then audits likewise."""
    mutations = list(mutations)
    tests = sorted({name for mutation in mutations for name in mutation.tests})
    audits = sorted({mutation.audit for mutation in mutations if mutation.audit})
    asked = [Asked("tests", tuple(name for name in tests if name.startswith(f"{file}::"))) for file in files(tests)]
    asked += [Asked("tests", mutation.tests, mutation) for mutation in mutations if mutation.tests]
    asked += [Asked("audit", (name,)) for name in audits]
    return asked + [Asked("audit", (mutation.audit,), mutation) for mutation in mutations if mutation.audit]


def files(tests: Iterable[str]) -> list[str]:
    """Of node ids."""
    return sorted({name.partition("::")[0] for name in tests})


def _remember(runs: dict[str, dict[str, Any]]) -> None:
    REMEMBERED.parent.mkdir(exist_ok=True)
    partial = REMEMBERED.with_suffix(".partial")
    partial.write_text(json.dumps(runs), encoding="utf-8")
    partial.replace(REMEMBERED)
