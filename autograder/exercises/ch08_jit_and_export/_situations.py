"""The small models that is_trace_faithful is asked about, each with an example and the inputs that come later."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Situation(NamedTuple):
    """One question to the student's function. ``model`` is in training mode, as every new module is."""

    name: str
    model: nn.Module
    example: Tensor
    others: list[Tensor]


class BySize(nn.Module):
    """One layer for a single row, another for more."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.single, self.many = nn.Linear(features, features), nn.Linear(features, 2 * features)

    def forward(self, x: Tensor) -> Tensor:
        """Choose by the number of rows."""
        return self.many(x) if x.shape[0] > 1 else self.single(x)


class BySign(nn.Module):
    """Doubles what is positive on the whole, negates the rest."""

    def forward(self, x: Tensor) -> Tensor:
        """Choose by the values."""
        return x * 2 if x.sum() > 0 else -x


class ByAxes(nn.Module):
    """Scales by the number of axes, which is a plain Python number: the tracer sees no decision here."""

    def forward(self, x: Tensor) -> Tensor:
        """Choose by the rank."""
        return x * (2.0 if x.dim() == 2 else 3.0)


class RowByRow(nn.Module):
    """Adds as often as the input has rows."""

    def forward(self, x: Tensor) -> Tensor:
        """Loop over the rows."""
        total = torch.zeros_like(x[0])
        for row in range(x.shape[0]):
            total = total + x[row]
        return total


class DropsAxis(nn.Module):
    """Returns a single row without its batch axis."""

    def forward(self, x: Tensor) -> Tensor:
        """Choose the shape by the number of rows."""
        return (x * 2).squeeze(0) if x.shape[0] == 1 else x * 2


class Logarithm(nn.Module):
    """Gives nan for what is negative."""

    def forward(self, x: Tensor) -> Tensor:
        """Take the logarithm."""
        return x.log()


class Flattening(nn.Module):
    """Flattens what has three axes, then needs rows of one length."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(2 * features, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Accept rows or small pictures."""
        return self.layer(x.flatten(1) if x.dim() == 3 else x)


class Labelled(nn.Module):
    """Returns a text beside the tensor, which no trace can hold."""

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        """Answer with a label."""
        return x * 2, "doubled"


class Counting(nn.Module):
    """Counts its calls in a buffer, in every mode."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(features, 2)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        """Count and answer."""
        self.calls += 1
        return self.layer(x)


def situations(x: Tensor, side: float, device: str) -> list[Situation]:
    """Return every situation for positive rows ``x`` (two or more) and the side, 1 or -1, on which examples lie."""
    features = x.shape[1]
    here, there = side * x, -side * x
    pictures = torch.stack([here, there], 1)
    models = [
        Situation("a model without a branch", nn.Sequential(nn.Linear(features, 4), nn.Tanh()), here, [there]),
        Situation("an if on the number of rows", BySize(features), here[:1], [here[:1], here]),
        Situation("an if on the values", BySign(), here, [there, here]),
        Situation("an if that all inputs answer alike", BySign(), here, [2 * here, 3 * here]),
        Situation("an if without a warning", ByAxes(), here, [here, here[None]]),
        Situation("a loop over the rows", RowByRow(), here, [here, torch.cat([here, here])]),
        Situation("a branch that drops an axis", DropsAxis(), here, [here[:1]]),
        Situation("nan in the same places", Logarithm(), here, [torch.cat([here, there])]),
        Situation("dropout", nn.Sequential(nn.Linear(features, 32), nn.Dropout(0.5)), here, [there]),
        Situation("only the last input parts", BySign(), here, [here, 2 * here, there]),
        Situation("a model that counts its calls", Counting(features), here, [here, there]),
        Situation("a trace that raises", Flattening(features), torch.cat([here, there], 1), [pictures]),
        Situation("a model that cannot be traced", Labelled(), here, [here]),
    ]
    return [entry._replace(model=entry.model.to(device)) for entry in models]
