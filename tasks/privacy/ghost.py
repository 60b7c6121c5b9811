"""Per-example gradients of linear layers without forming them: their norms, and weighted sums of them.

An affine layer sees one row a of inputs per example and passes on one row of outputs; with e the derivative of the
example's loss by those outputs, the example's gradient is e ⊗ a for the weights and e for the biases. The norm of an
outer product is the product of norms, in L2 as in L1, and a weighted sum of outer products is one matrix product. So
clipping costs one backward pass that stops at activations, and memory for activations alone. Goodfellow ("Efficient
per-example gradient computations", 2015) for L2; Li et al. (ICLR 2022) call it ghost clipping.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Call(NamedTuple):
    """One use of a layer in a forward pass."""

    layer: nn.Linear
    inputs: Tensor
    """(n, n_in)."""
    outputs: Tensor
    """(n, n_out), within the graph."""


class Outer(NamedTuple):
    """The gradients of n examples for one layer: errors_i ⊗ inputs_i for its weights, errors_i for its biases."""

    layer: nn.Linear
    inputs: Tensor
    """(n, n_in)."""
    errors: Tensor
    """(n, n_out) derivative of each example's own loss by the layer's outputs."""

    def squared_norms(self) -> Tensor:
        """(n,) squared L2 norms."""
        return (self.inputs.square().sum(1) + self._bias) * self.errors.square().sum(1)

    def l1_norms(self) -> Tensor:
        """(n,) sums of absolute values."""
        return (self.inputs.abs().sum(1) + self._bias) * self.errors.abs().sum(1)

    def weighted_sums(self, weights: Tensor) -> list[Tensor]:
        """Sum over examples of weight × gradient, for the weights and (where there are any) the biases.

        Args:
            weights: (n,).
        """
        errors = weights[:, None] * self.errors
        return [errors.T @ self.inputs, *([errors.sum(0)] if self._bias else [])]

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """(n,) inner products of the gradients with a direction shaped like the weights (and the biases)."""
        found = ((self.errors @ direction[0]) * self.inputs).sum(1)
        return found + self.errors @ direction[1] if self._bias else found

    @property
    def _bias(self) -> int:
        return int(self.layer.bias is not None)


def bounded(outers: Sequence[Outer]) -> tuple[list[Outer], Tensor]:
    """The same gradients, zeros in place of those that are not finite, and the L2 norms of all: (n,).

    An infinite gradient cannot be scaled down to any norm, so it must not enter a sum that is to be private.
    """
    norms = squared_norms(outers).clamp(min=0).sqrt()
    broken = ~norms.isfinite()
    if broken.any():
        outers = [
            Outer(layer, inputs.masked_fill(broken[:, None], 0.0), errors.masked_fill(broken[:, None], 0.0))
            for layer, inputs, errors in outers
        ]
        norms = norms.masked_fill(broken, 0.0)
    return list(outers), norms


@contextmanager
def recorded(network: nn.Module) -> Iterator[list[Call]]:
    """Collects every use of a trained linear layer of `network` while the block runs, in order.

    Raises:
        ValueError: a layer is used twice, sees something else than rows, or has one of its parameters frozen: its
            gradients would not be outer products that cover it.
    """
    calls: list[Call] = []

    def note(layer: nn.Module, inputs: tuple[Any, ...], outputs: Any) -> None:
        assert isinstance(layer, nn.Linear)
        if any(call.layer is layer for call in calls):
            raise ValueError("ghost norms need every layer to be used once per example")
        if inputs[0].ndim != 2:
            raise ValueError(f"ghost norms need rows of inputs, one per example (have {tuple(inputs[0].shape)})")
        calls.append(Call(layer, inputs[0].detach(), outputs))

    handles = []
    try:
        for layer in network.modules():
            if not isinstance(layer, nn.Linear):
                continue
            trained = {parameter.requires_grad for parameter in layer.parameters()}
            if len(trained) > 1:
                raise ValueError("ghost norms need the weights and biases of a layer both trained or both frozen")
            if trained == {True}:
                handles.append(layer.register_forward_hook(note))
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def gradients(
    losses: Tensor, calls: Sequence[Call], local: Sequence[Tensor] = ()
) -> tuple[list[Outer], tuple[Tensor, ...]]:
    """The gradients of all examples, one backward pass.

    Args:
        losses: (n,) the loss of each example; row i of every call must influence loss i alone.
        calls: what `recorded` collected while `losses` was computed.
        local: further tensors whose gradients of the summed loss are wanted, e.g. what belongs to the users alone.

    Returns:
        one `Outer` per call, and the gradients of `local`.
    """
    outputs = [call.outputs for call in calls]
    found = torch.autograd.grad(losses.sum(), [*outputs, *local])
    outers = [Outer(call.layer, call.inputs, error) for call, error in zip(calls, found, strict=False)]
    return outers, found[len(outers) :]


def squared_norms(outers: Sequence[Outer]) -> Tensor:
    """(n,) squared L2 norms of the examples' gradients, all layers together."""
    return torch.stack([outer.squared_norms() for outer in outers]).sum(0)


def l1_norms(outers: Sequence[Outer]) -> Tensor:
    """(n,) L1 norms of the examples' gradients, all layers together."""
    return torch.stack([outer.l1_norms() for outer in outers]).sum(0)


@dataclass(frozen=True)
class Scaled:
    """Gradients of n examples, each times a factor: what they would add to a sum."""

    outers: Sequence[Outer]
    factors: Tensor
    """(n,)."""

    def weighted_sum(self, weights: Tensor) -> list[Tensor]:
        """Sum over examples of weight × factor × gradient, a tensor per parameter; weights: (n,)."""
        return list(weighted_sums(self.outers, weights * self.factors).values())

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """(n,) inner products of factor × gradient with a direction, a tensor per parameter."""
        total, rest = torch.zeros_like(self.factors), list(direction)
        for outer in self.outers:
            n_own = len(list(outer.layer.parameters()))
            total = total + outer.inner(rest[:n_own])
            rest = rest[n_own:]
        return self.factors * total


def weighted_sums(outers: Sequence[Outer], weights: Tensor) -> dict[nn.Parameter, Tensor]:
    """For each parameter the sum over examples of weight × gradient; weights: (n,)."""
    return {
        parameter: total
        for outer in outers
        for parameter, total in zip(outer.layer.parameters(), outer.weighted_sums(weights), strict=True)
    }
