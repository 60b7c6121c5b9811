"""A device that is pretended: its tensors hold numbers on the CPU, and whatever mixes devices is refused as by CUDA.

Tensors say that they are on `meta`, the one device besides the CPU that torch accepts everywhere without hardware.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

from tasks.core.device import hold

PRETENDED = torch.device("meta")
COPIES = ("aten::_to_copy", "aten::copy_")
"""Operations that may read a tensor of one device and write one of another."""
INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
"""Operations whose second argument may be on the CPU: CUDA tensors take such indices, and move them."""


class Elsewhere(Tensor):
    """A tensor that is not on the CPU: `numbers` are, for the operations alone."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "Elsewhere":
        made = Tensor._make_wrapper_subclass(
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=PRETENDED,
        )
        made.numbers = numbers
        return made

    def __repr__(self) -> str:
        return f"Elsewhere({self.numbers})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Pretence(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


@contextmanager
def pretended() -> Iterator[None]:
    """Models and attacks work on the pretended device."""
    supported = patch("torch.optim.optimizer._get_fused_kernels_supported_devices", lambda: ["cpu", PRETENDED.type])
    with hold(PRETENDED), _Pretence(), supported:
        yield


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = tree_flatten((args, kwargs))[0]
    there = [leaf for leaf in leaves if isinstance(leaf, Elsewhere)]
    asked = kwargs.get("device")
    goes = bool(there) if asked is None else torch.device(asked) == PRETENDED
    if not there and not goes:
        return func(*args, **kwargs)
    if func._schema.name in INDEXING:
        leaves = tree_flatten((args[0], args[2:], kwargs))[0]
    if func._schema.name not in COPIES:
        here = [tuple(leaf.shape) for leaf in leaves if type(leaf) in (Tensor, Parameter) and leaf.ndim]
        assert not here, f"{func} mixes devices: shapes {here} are on the CPU"
        assert not any(isinstance(leaf, torch.Generator) for leaf in leaves), f"{func}: the generator is on the CPU"
    if asked is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    out = func(*tree_map(_numbers, args), **tree_map(_numbers, kwargs))
    if func._schema.name == "aten::copy_":
        return args[0]
    if not goes:
        return out
    return return_and_correct_aliasing(func, args, kwargs, tree_map(_elsewhere, out))


def _numbers(value: Any) -> Any:
    return value.numbers if isinstance(value, Elsewhere) else value


def _elsewhere(value: Any) -> Any:
    return Elsewhere(value) if type(value) is Tensor else value
