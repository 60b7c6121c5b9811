"""A release and its models as safetensors: arrays, and the ids of the catalogue as text."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from tasks.core.disk import atomic_write
from tasks.core.errors import DataError
from tasks.release.making import Release
from tasks.release.models import Kind, Model
from tasks.release.serving import Recommender

RELEASE, MODEL, LEDGER, CARD = "release.safetensors", "model.safetensors", "ledger.json", "card.html"
SCALARS = ("counts_scale", "pairs_scale", "n_users")


def save_release(folder: Path, release: Release, items: list[str], marks: dict[str, str]) -> None:
    """Write `release.safetensors`; marks: what else whoever fits it must see, such as where its noise came from."""
    arrays = {name: np.array(getattr(release, name)) for name in ("counts", "head", "pairs", *SCALARS)}
    _save(folder / RELEASE, arrays | {"items": _packed(items)}, marks)


def load_release(folder: Path) -> tuple[Release, list[str], dict[str, str]]:
    """What `save_release` wrote; it opens no other file.

    Raises:
        DataError: there is no such file, or it is none.
    """
    arrays, marks = _read(folder / RELEASE)
    try:
        items = _items(arrays)
        scalars = {name: float(arrays.pop(name)) for name in SCALARS}
        release = Release(**arrays, **scalars)  # type: ignore[arg-type]
        if len(release.head) * (len(release.head) - 1) != 2 * release.pairs.size:
            raise ValueError("pairs of other items")
        return release, items, marks
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / RELEASE}: not a release of `dprec release`") from error


def save_model(folder: Path, model: Model, items: list[str], marks: dict[str, str]) -> None:
    """Write `model.safetensors`."""
    arrays = {"counts": model.counts, "head": model.head, "items": _packed(items), **model.arrays}
    contiguous = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    _save(folder / MODEL, contiguous, marks | {"model": model.kind})


def load(folder: Path | str) -> Recommender:
    """The recommender of a folder that `dprec release` wrote: `.recommend(items, k)`.

    Raises:
        DataError: the folder has no model, or one that cannot serve.
    """
    path = Path(folder) / MODEL
    arrays, marks = _read(path)
    try:
        items, kind = _items(arrays), marks["model"]
        if kind not in get_args(Kind):
            raise ValueError(kind)
        model = Model(kind, arrays.pop("counts"), arrays.pop("head"), arrays)  # type: ignore[arg-type]
        if len(model.head):
            model.scores(np.zeros((1, len(model.head)), np.float32))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a model of `dprec release`") from error
    return Recommender(model, items, marks)


def _read(path: Path) -> tuple[dict[str, NDArray[np.generic]], dict[str, str]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file; `dprec release` writes it")
    try:
        with safe_open(path, "numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            marks = dict(json.loads((file.metadata() or {}).get("dprec", "{}")))
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("numbers that are not finite")
    except (SafetensorError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not readable ({error})") from None
    if marks.get("noise") == "research":
        text = f"{path}: research noise, which who knows its seed can take off: for experiments alone"
        warnings.warn(text, stacklevel=3)
    return arrays, marks


def _save(path: Path, arrays: dict[str, NDArray[np.generic]], marks: dict[str, str]) -> None:
    """Marks are one entry, since safetensors write several in any order."""
    if strange := [name for name, array in arrays.items() if not np.isfinite(array).all()]:
        raise DataError(f"{path}: not written, since {', '.join(strange)} has numbers that are not finite")
    try:
        with atomic_write(path) as new:
            save_file(arrays, new, metadata={"dprec": json.dumps(marks)})
    except SafetensorError as error:
        raise DataError(f"{path}: not written ({error})") from None


def _packed(items: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(items, ensure_ascii=False).encode(), np.uint8).copy()


def _items(arrays: dict[str, NDArray[np.generic]]) -> list[str]:
    """The ids of the catalogue, of which there is a count each, and each of the head is one."""
    items, head = json.loads(arrays.pop("items").tobytes().decode()), arrays["head"]
    if arrays["counts"].shape != (len(items),) or len({*map(str, items)}) != len(items):
        raise ValueError("other items")
    if head.ndim != 1 or len(np.unique(head)) != len(head) or not np.isin(head, np.arange(len(items))).all():
        raise ValueError("a head of other items")
    return [str(item) for item in items]
