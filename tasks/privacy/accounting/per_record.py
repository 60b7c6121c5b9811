"""Gradients of each record of a batch, exact and all at once, where rows of a computation each belong to one record.

The gradients of record r by a parameter are those by a parameter of its own, of which all records have equal copies
(`copies`). Only maps from rows to rows use them. As the copies are equal, a map multiplies all rows by one matrix, as
usual; going back, the rows of each record are multiplied among themselves. So a pass costs what an ordinary one does,
and automatic differentiation adds up what a parameter gets where it is used more than once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def copies(parameter: Tensor, n_records: int) -> Tensor:
    """A copy of `parameter` for each record, (n_records, ...), to take gradients by; takes no memory itself."""
    return parameter.detach().expand(n_records, *parameter.shape).requires_grad_()


class Owned:
    """Which record each of some rows belongs to."""

    def __init__(self, owners: Tensor, n_records: int) -> None:
        """owners: (n_rows,) int64 records of the rows, ascending."""
        self.owners = owners
        counts = torch.bincount(owners, minlength=n_records)
        longest = int(counts.max()) if len(counts) else 0
        self._shape = n_records, longest
        starts = counts.cumsum(0) - counts
        self._places = torch.arange(len(owners), device=owners.device) + (owners * longest - starts[owners])

    def pad(self, rows: Tensor) -> Tensor:
        """(n_rows, width) -> (n_records, longest, width), zeros after the last row of a record."""
        table = rows.new_zeros(self._shape[0] * self._shape[1], rows.shape[1])
        return table.index_copy_(0, self._places, rows).view(*self._shape, rows.shape[1])


def product(rows: Tensor, matrices: Tensor, owned: Owned) -> Tensor:
    """Every row times its record's matrix: (n_rows, n_in) -> (n_rows, n_out).

    Args:
        rows: (n_rows, n_in).
        matrices: copies of one matrix, (n_records, n_out, n_in).
        owned: whose the rows are.
    """
    return _Product.apply(rows, matrices, owned)  # type: ignore[no-any-return, no-untyped-call]  # torch has no types here


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, owned: Owned) -> Tensor:
        ctx.save_for_backward(rows, matrices)
        ctx.owned = owned
        return rows @ matrices[0].T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrices = ctx.saved_tensors
        (gradient,) = gradients
        of_rows = gradient @ matrices[0] if ctx.needs_input_grad[0] else None
        padded = ctx.owned.pad
        return of_rows, padded(gradient).transpose(1, 2) @ padded(rows), None


def squared_norms(gradients: list[Tensor]) -> Tensor:
    """(n_records,) squared norms of the records' gradients, all parameters together; each (n_records, ...)."""
    return torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0)


def zero_infinite(gradients: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    """The same gradients, zeros for records where these are not finite, and the squared norms of all: (n_records,).

    An infinite gradient cannot be scaled down to any norm, so it must not enter a sum that is to be private.
    """
    norms = squared_norms(gradients)
    broken = ~norms.isfinite()
    if broken.any():
        gradients = [gradient.masked_fill(broken.view(-1, *[1] * (gradient.dim() - 1)), 0.0) for gradient in gradients]
        norms = norms.masked_fill(broken, 0.0)
    return gradients, norms


def weighted_sums(gradients: list[Tensor], weights: Tensor) -> list[Tensor]:
    """For each parameter the sum over records of weight × gradient; weights: (n_records,)."""
    return [torch.tensordot(weights, gradient, 1) for gradient in gradients]
