"""How the tools under dprec are set, however they are started: `make`, `dprec`, a test, a scheduled run.

Prefect and DVC also read the project's own files (prefect.toml, .dvc/config), so that `prefect` and `dvc` behave the
same when they are called by hand in the project's folder.
"""

from __future__ import annotations

import atexit
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.core.errors import ConfigurationError
from tasks.pipeline.common import RESULTS

SHIPPED = Path(".dvc/tmp/shipped")
"""A copy of each suite's `metrics.csv`, as it was in a project without git before anything ran."""
WITHOUT_PROJECT = ("audit", "release")
"""Commands that read a user's own files alone, and run anywhere."""
WRITING = ("init", "run", "schedule", "scrub", "tune")
"""Commands for which a project that may not be written to will not do; elsewhere DVC writes to a folder of its own."""


def project(start: Path) -> Path:
    """The project that `start` lies in: the nearest folder with a dvc.yaml and DVC's own folder.

    Suites and data have a dvc.yaml, too, and lie within it.

    Raises:
        ConfigurationError: there is none.
    """
    for folder in (start, *start.parents):
        if (folder / "dvc.yaml").is_file() and (folder / ".dvc").is_dir():
            return folder
    raise ConfigurationError(
        f"{start}: neither this folder nor one above it has a dvc.yaml and .dvc; run this in the project"
    )


def show_version(show: bool) -> None:
    """Print the installed version and end, where it is asked for."""
    if show:
        from importlib.metadata import version  # a tenth of a second to import

        print(f"dprec {version('dprec')}")
        raise SystemExit


def is_writable(root: Path) -> bool:
    """Whether a project may be written to, as a read-only mount or another user's clone may not."""
    return os.access(root, os.W_OK)


def keep_shipped() -> None:
    """Copy the numbers of a project without git, for comparison."""
    SHIPPED.mkdir(parents=True, exist_ok=True)
    for path in RESULTS.glob("*/metrics.csv"):
        shutil.copyfile(path, SHIPPED / f"{path.parent.name}.csv")


def apply(root: Path) -> None:
    """Set what must be set before Prefect, DVC or Great Expectations is imported; what the user set stays."""
    site = root / ".dvc" / "tmp" / "site"
    if not is_writable(root):
        elsewhere = TemporaryDirectory(prefix="dprec-")
        atexit.register(elsewhere.cleanup)
        site = Path(elsewhere.name)
    defaults = {
        "PREFECT_HOME": str(root / ".prefect"),
        # Its own lines would double ours; they are kept in the run's log all the same.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "DVC_NO_ANALYTICS": "1",
        # What DVC remembers of files, which it unpickles: by default in a folder that all users may write to.
        "DVC_SITE_CACHE_DIR": str(site),
        "GX_ANALYTICS_ENABLED": "false",
        "DGLBACKEND": "pytorch",
    }
    for key, value in defaults.items():
        os.environ.setdefault(key, value)
    site.mkdir(parents=True, exist_ok=True)
    site.chmod(0o700)  # DVC lets all users write to what it makes there
