"""Fitted models on disk: tensors as safetensors, the configuration as JSON in the header; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import torch
from pydantic import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from tasks.errors import DataError

C = TypeVar("C", bound=BaseModel)


def save_tensors(path: Path, tensors: dict[str, torch.Tensor], config: BaseModel) -> None:
    """Write named tensors and the configuration they belong to."""
    own = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    save_file(own, path, metadata={"config": config.model_dump_json()})


def load_tensors(path: Path, config: type[C]) -> tuple[dict[str, torch.Tensor], C]:
    """Read what `save_tensors` wrote.

    Raises:
        DataError: the file is missing, damaged, or of another kind of model.
    """
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, config.model_validate_json(
                file.metadata()["config"]
            )
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise DataError(f"{path}: not a saved model ({' '.join(str(error).split())}); train it again") from error
