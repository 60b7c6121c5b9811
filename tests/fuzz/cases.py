"""One case: a sample with one file spoilt must load, or be refused in one line that names the file."""

import random
import tempfile
from pathlib import Path

from tasks.pipeline.common import atomic_write
from tests.fuzz.mutations import spoilt
from tests.fuzz.samples import samples, write

LONGEST = 1500
"""Characters of a message."""


class Wrong(AssertionError):
    """Neither loaded nor refused as it should be."""


def run(name: str, number: int) -> str | None:
    """Spoil a sample as `number` says, and read it.

    Returns:
        The refusal, None where it loads.

    Raises:
        Wrong: it ends in another way.
    """
    sample, rng = samples()[name], random.Random(f"{name} {number}")
    with tempfile.TemporaryDirectory(prefix="fuzz") as root:
        folder = Path(root) / "raw"
        write(sample, folder)
        target = rng.choice(sorted(sample.files))
        path = folder / target
        match rng.randrange(50):
            case 0:
                path.unlink()
            case 1:
                path.unlink()
                path.mkdir()  # an `OSError`, which stages show in one line
            case _:
                path.write_bytes(spoilt(target, sample.files[target], rng))
        before = _listed(folder)
        message = None
        try:
            with atomic_write(Path(root) / "out" / "tables", durable=False) as place:
                place.mkdir()
                sample.read(folder, place)
        except sample.refusal as error:
            message = str(error)
        except KeyboardInterrupt:
            raise
        except OSError as error:  # of a folder where a file should be; stages show it in one line
            if error.filename is None:
                raise Wrong(f"{name} {number} ({target}): {error!r}") from error
            message = f"{error.filename}: {error.strerror}"
        except BaseException as error:  # polars' panics among them
            raise Wrong(f"{name} {number} ({target}): {type(error).__name__}: {error}") from error
        complaint = _complaint(message, root, folder)
        if not complaint and _listed(folder) != before:
            complaint = "the files that are read were changed"
        left = [path.name for path in (Path(root) / "out").iterdir()]
        if not complaint and left != ([] if message else ["tables"]):
            complaint = f"left behind: {left}"
        if complaint:
            raise Wrong(f"{name} {number} ({target}): {complaint}: {message}")
        return message and message.replace(root, "")


def _listed(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def _complaint(message: str | None, root: str, folder: Path) -> str:
    if message is None:
        return ""
    if not message.isprintable():
        return "more than one line, or control characters"
    if not message.startswith(str(folder)) or root in message.replace(str(folder), ""):
        return "names no file"
    return "too long" if len(message) > LONGEST else ""
