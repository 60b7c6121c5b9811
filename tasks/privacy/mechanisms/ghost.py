"""Per-example gradients of linear layers without forming them: their norms, and weighted sums of them.

An affine layer sees one row a of inputs per example and passes on one row of outputs; with e the derivative of the
example's loss with respect to those outputs, the example's gradient is e ⊗ a for the weights and e for the biases. The
norm of an outer product is the product of norms, in L2 as in L1, and a weighted sum of outer products is one matrix
product. So clipping costs one backward pass that stops at activations, and memory for activations alone. Goodfellow
("Efficient per-example gradient computations", 2015) for L2; Li et al. (ICLR 2022) call it ghost clipping.

Weights W that a second layer uses transposed (`Transposed`) have the gradient e ⊗ a + b ⊗ f, with b what that layer
sees and f the derivative with respect to what it passes on. Its squared L2 norm is
|e|²|a|² + |b|²|f|² + 2 (e·b)(a·f); its L1 norm does not come apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from tasks.core.errors import ConfigurationError


class Transposed(nn.Module):
    """A linear layer whose weights are another's, transposed, and whose biases, which begin at 0, are its own."""

    def __init__(self, source: nn.Linear) -> None:
        """source: (n_out, n_in) weights; this layer then sees n_out numbers and passes on n_in."""
        super().__init__()
        self._source = (source,)  # in a tuple, so that its parameters are not counted as this layer's
        self.bias = nn.Parameter(torch.zeros(source.in_features))

    @property
    def source(self) -> nn.Linear:
        """The layer whose weights these are."""
        return self._source[0]

    @property
    def weight(self) -> Tensor:
        """(n_in, n_out) of the source: a view, not a parameter."""
        return self.source.weight.T

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs: (..., n_out) of the source."""
        return linear(inputs, self.weight, self.bias)


class Call(NamedTuple):
    """One use of a layer in a forward pass."""

    layer: nn.Linear | Transposed
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
    """(n, n_out) derivative of each example's loss with respect to the layer's outputs."""

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
        products = ((self.errors @ direction[0]) * self.inputs).sum(1)
        return products + self.errors @ direction[1] if self._bias else products

    def parameters(self) -> list[nn.Parameter]:
        """The parameters whose gradients these are, in the order of `weighted_sums` and `inner`."""
        return list(self.layer.parameters())

    def without(self, broken: Tensor) -> Outer:
        """Zeros in place of the gradients that `broken`, (n,) bool, marks."""
        return Outer(self.layer, *(part.masked_fill(broken[:, None], 0.0) for part in self[1:]))

    @property
    def _bias(self) -> int:
        return int(self.layer.bias is not None)


class TiedOuters(NamedTuple):
    """The gradients of n examples for a layer and for a later one that has its weights, transposed.

    first.errors_i ⊗ first.inputs_i + inputs_i ⊗ errors_i for the weights, first.errors_i for the first layer's biases
    (where it has any), errors_i for the later one's.
    """

    first: Outer
    layer: Transposed
    inputs: Tensor
    """(n, n_out of the first layer) what the later layer sees."""
    errors: Tensor
    """(n, n_in of the first layer) derivative of each example's loss with respect to the later layer's outputs."""

    def squared_norms(self) -> Tensor:
        """See `Outer.squared_norms`."""
        later = (self.inputs.square().sum(1) + 1) * self.errors.square().sum(1)
        both = (self.first.errors * self.inputs).sum(1) * (self.first.inputs * self.errors).sum(1)
        return self.first.squared_norms() + later + 2 * both

    def l1_norms(self) -> Tensor:
        """Absolute values of a sum of two outer products have no closed form.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(
            "the optimal clip needs L1 norms of gradients, which tied weights do not give; say privacy: dpsgd"
        )

    def weighted_sums(self, weights: Tensor) -> list[Tensor]:
        """See `Outer.weighted_sums`."""
        total, *biases = self.first.weighted_sums(weights)
        errors = weights[:, None] * self.errors
        return [total.addmm_(self.inputs.T, errors), *biases, errors.sum(0)]

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """See `Outer.inner`."""
        *first, last = direction
        later = ((self.inputs @ direction[0]) * self.errors).sum(1)
        return self.first.inner(first) + later + self.errors @ last

    def parameters(self) -> list[nn.Parameter]:
        """See `Outer.parameters`."""
        return [*self.first.parameters(), self.layer.bias]

    def without(self, broken: Tensor) -> TiedOuters:
        """See `Outer.without`."""
        inputs, errors = (part.masked_fill(broken[:, None], 0.0) for part in self[2:])
        return TiedOuters(self.first.without(broken), self.layer, inputs, errors)


Outers = Outer | TiedOuters
"""The gradients of n examples for the parameters of a layer, or of two that share weights."""


def zero_non_finite(outers: Sequence[Outers]) -> tuple[list[Outers], Tensor]:
    """The same gradients, with zeros for every example whose norm is not finite, and the L2 norms of all: (n,).

    An infinite gradient cannot be scaled down to any norm, so it must not enter a sum that is to be private.
    """
    norms = squared_norms(outers).clamp(min=0).sqrt()
    broken = ~norms.isfinite()
    if broken.any():
        outers = [outer.without(broken) for outer in outers]
        norms = norms.masked_fill(broken, 0.0)
    return list(outers), norms


@contextmanager
def record_calls(network: nn.Module) -> Iterator[list[Call]]:
    """Collects every use of a trained linear layer of `network` while the block runs, in order.

    Raises:
        ValueError: a layer has a trained and a frozen parameter, is used twice, or sees other than (n, n_in) inputs.
    """
    calls: list[Call] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor) -> None:
        assert isinstance(layer, nn.Linear | Transposed)
        if any(call.layer is layer for call in calls):
            raise ValueError("ghost norms need every layer to be used once per example")
        if inputs[0].ndim != 2:
            raise ValueError(f"ghost norms need rows of inputs, one per example (have {tuple(inputs[0].shape)})")
        calls.append(Call(layer, inputs[0].detach(), outputs))

    handles = []
    try:
        for layer in network.modules():
            if not isinstance(layer, nn.Linear | Transposed):
                continue
            parameters = [*layer.parameters(), *(layer.source.parameters() if isinstance(layer, Transposed) else [])]
            trained = {parameter.requires_grad for parameter in parameters}
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
) -> tuple[list[Outers], tuple[Tensor, ...]]:
    """The gradients of all examples, by one backward pass.

    Args:
        losses: (n,) the loss of each example; row i of every call must influence loss i alone.
        calls: what `record_calls` collected while `losses` was computed.
        local: further tensors whose gradients of the summed loss are wanted, e.g. what belongs to the users alone.

    Returns:
        one `Outer` per call, or one `TiedOuters` per two calls that share weights, and the gradients of `local`.

    Raises:
        ValueError: transposed weights are used without their source, or twice.
    """
    gradients = torch.autograd.grad(losses.sum(), [*(call.outputs for call in calls), *local])
    outers: dict[nn.Linear, Outers] = {}
    for call, errors in zip(calls, gradients, strict=False):
        if isinstance(call.layer, nn.Linear):
            outers[call.layer] = Outer(call.layer, call.inputs, errors)
    for call, errors in zip(calls, gradients, strict=False):
        if isinstance(call.layer, Transposed):
            first = outers.get(call.layer.source)
            if not isinstance(first, Outer):
                raise ValueError("ghost norms need the source of transposed weights to be used next to them, both once")
            outers[call.layer.source] = TiedOuters(first, call.layer, call.inputs, errors)
    return list(outers.values()), gradients[len(calls) :]


def squared_norms(outers: Sequence[Outers]) -> Tensor:
    """(n,) squared L2 norms of the examples' gradients, all layers together."""
    return torch.stack([outer.squared_norms() for outer in outers]).sum(0)


def l1_norms(outers: Sequence[Outers]) -> Tensor:
    """(n,) L1 norms of the examples' gradients, all layers together."""
    return torch.stack([outer.l1_norms() for outer in outers]).sum(0)


@dataclass(frozen=True)
class Scaled:
    """Gradients of n examples, each times a factor: what they would add to a sum."""

    outers: Sequence[Outers]
    factors: Tensor
    """(n,)."""

    def weighted_sum(self, weights: Tensor) -> list[Tensor]:
        """Sum over examples of weight × factor × gradient, a tensor per parameter; weights: (n,)."""
        return list(weighted_sums(self.outers, weights * self.factors).values())

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """(n,) inner products of factor × gradient with a direction, a tensor per parameter."""
        total, remaining = torch.zeros_like(self.factors), list(direction)
        for outer in self.outers:
            n_own = len(outer.parameters())
            total = total + outer.inner(remaining[:n_own])
            remaining = remaining[n_own:]
        return self.factors * total


def weighted_sums(outers: Sequence[Outers], weights: Tensor) -> dict[nn.Parameter, Tensor]:
    """For each parameter the sum over examples of weight × gradient; weights: (n,)."""
    return {
        parameter: total
        for outer in outers
        for parameter, total in zip(outer.parameters(), outer.weighted_sums(weights), strict=True)
    }
