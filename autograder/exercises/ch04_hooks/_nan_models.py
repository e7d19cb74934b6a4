"""Models with one guilty module each, and what is guilty of what. Small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

Loss = Callable[[torch.Tensor], torch.Tensor]


class Situation(NamedTuple):
    """A model, its input, and the function that turns its output into a loss."""

    model: nn.Module
    x: torch.Tensor
    loss: Loss


class Square(nn.Module):
    """x times x."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the squares."""
        return x * x


class SquareRoot(nn.Module):
    """Finite at zero, with a gradient that is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the square roots."""
        return torch.sqrt(x)


class UnitRows(nn.Module):
    """Divides every row by its length, a row of zeros too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the rows at length one."""
        return x / x.abs().sum(-1, keepdim=True)


class Distance(nn.Module):
    """Its own forward holds the square root; its children are innocent."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = nn.Linear(width, width)
        self.after = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a layer of the lengths of a layer."""
        return self.after(self.before(x).square().sqrt())


class RootOfWeight(nn.Module):
    """A weight of zero under a square root: only its own gradient breaks."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, shifted by roots of the weights."""
        return x + self.scale.sqrt()


class Wrapped(nn.Module):
    """A module around another one, for paths with two parts."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what is inside, and a little of the input."""
        return self.inner(x) + 0.5 * x


def mean_square(output: torch.Tensor) -> torch.Tensor:
    """A loss with nothing to hide."""
    return output.square().mean()


def _with_a_zero(width: int) -> nn.Linear:
    """Return a layer whose first output is exactly zero, whatever comes in."""
    layer = nn.Linear(width, width)
    with torch.no_grad():
        layer.weight[0].zero_()
        layer.bias[0].zero_()
    return layer


def healthy(width: int, x: torch.Tensor) -> Situation:
    """Nothing is wrong, and BatchNorm would remember a second visit."""
    return Situation(nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.Tanh()), x, mean_square)


def root_at_zero(width: int, x: torch.Tensor) -> Situation:
    """The square root's gradient is infinite at zero, and nan from the square below it."""
    layers = (_with_a_zero(width), Square(), SquareRoot(), nn.Linear(width, 1))
    return Situation(nn.Sequential(*layers), x, mean_square)


def nested_root(width: int, x: torch.Tensor) -> Situation:
    """The same, one level down."""
    inner = nn.Sequential(_with_a_zero(width), Square(), SquareRoot())
    return Situation(nn.Sequential(nn.Linear(width, width), Wrapped(inner), nn.Linear(width, 1)), x, mean_square)


def own_operation(width: int, x: torch.Tensor) -> Situation:
    """The guilty operation stands in the forward of a module that has children."""
    block = Distance(width)
    block.before = _with_a_zero(width)
    return Situation(nn.Sequential(nn.Linear(width, width), block, nn.Linear(width, 1)), x, mean_square)


def first_module(width: int, x: torch.Tensor) -> Situation:
    """The same block as the first module: its input needs no gradient, unless somebody asks for one."""
    block = Distance(width)
    block.before = _with_a_zero(width)
    return Situation(nn.Sequential(block, nn.Linear(width, 1)), x, mean_square)


def own_weight(width: int, x: torch.Tensor) -> Situation:
    """What flows on is finite; the gradient of one weight is not."""
    return Situation(nn.Sequential(nn.Linear(width, width), RootOfWeight(width), nn.Tanh()), x, mean_square)


def zero_by_zero(width: int, x: torch.Tensor) -> Situation:
    """A row of zeros is divided by its length, in forward already."""
    inner = nn.Sequential(nn.Linear(width, width, bias=False), UnitRows())
    x[0] = 0.0
    return Situation(nn.Sequential(Wrapped(inner), nn.Linear(width, 1)), x, mean_square)


def broken_weight(width: int, x: torch.Tensor) -> Situation:
    """One weight is infinite, as after a step that was too long."""
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Sequential(nn.Tanh(), nn.Linear(width, 2)))
    with torch.no_grad():
        model[2][1].weight[0, 0] = float("inf")
    return Situation(model, x, mean_square)


def broken_data(width: int, x: torch.Tensor) -> Situation:
    """The input holds a nan before any module sees it."""
    x[-1, 0] = float("nan")
    return Situation(nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)), x, mean_square)


def broken_loss(width: int, x: torch.Tensor) -> Situation:
    """The model is finite; the logarithm of a negative number is the loss's own doing."""
    return Situation(_innocent(width), x, lambda output: torch.log(output.abs() - output.abs().max() - 1.0).mean())


def steep_loss(width: int, x: torch.Tensor) -> Situation:
    """The loss is finite; its gradient is infinite where the difference is zero."""
    return Situation(_innocent(width), x, lambda output: (output - output.detach()).square().sqrt().mean())


def _innocent(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))


SITUATIONS: dict[str, Callable[[int, torch.Tensor], Situation]] = {
    "a healthy model": healthy,
    "a square root at zero": root_at_zero,
    "a square root at zero, one level down": nested_root,
    "an operation in a module's own forward": own_operation,
    "the same operation in the first module": first_module,
    "a weight whose own gradient breaks": own_weight,
    "a row divided by its length of zero": zero_by_zero,
    "an infinite weight": broken_weight,
    "a nan in the data": broken_data,
    "a loss that breaks": broken_loss,
    "a loss whose gradient breaks": steep_loss,
}
