"""`dprec compare`: regenerated numbers compared with the committed ones."""

from __future__ import annotations

from flows import plan, settings
from tasks.config import params
from tasks.errors import DataError
from tasks.stages.agreement import METRICS, bands, compare, means
from tasks.stages.common import PROVENANCE, RESULTS
from tasks.stages.provenance import git


class NothingRun(DataError):
    """There are no regenerated numbers."""


def compare_with_revision(suite: str, revision: str) -> tuple[int, list[str], str]:
    """Compare `data/results/<suite>/metrics.csv` with that of a git revision, or as it was shipped without git.

    Returns:
        How many numbers were compared, those that differ by more than their tolerance, and whose the others are.

    Raises:
        NothingRun: the suite was not run here to its end, so that the file is the committed one.
        DataError: one of the two is not there.
    """
    path = RESULTS / suite / METRICS
    ran = (PROVENANCE / "check" / "metrics" / f"{suite}.json").is_file()
    with plan.current_project(suite) as project:
        pending = plan.read(f"report@{suite}", project).pending
    if pending:
        raise NothingRun(
            f"{suite}: its results were not computed here, or not to the end ({pending[0].name}: {pending[0].why}), so "
            f"there is nothing to compare; `dprec run {suite}` first"
        )
    if not ran:
        raise NothingRun(
            f"{suite}: its results were pulled, not computed here, so there is nothing to compare; "
            f"`dprec run {suite} --force` computes them"
        )
    if not path.is_file():
        raise DataError(f"{path}: not there; regenerate it with `dprec run {suite}`")
    shipped = settings.SHIPPED / f"{suite}.csv"
    if shipped.is_file():
        there, whose = shipped.as_posix(), "the archive"
        before: str | None = shipped.read_text(encoding="utf-8")
    else:  # a revision that starts with a hyphen is none of git's options
        there, whose = f"{revision}:./{path.as_posix()}", revision
        before = git("show", "--end-of-options", there)
    if before is None:
        raise DataError(f"{path}: {revision} has no numbers to compare with")
    regenerated = means(path.read_text(encoding="utf-8"), str(path))
    return *compare(means(before, there), regenerated, bands(params.load().suites[suite])), whose
