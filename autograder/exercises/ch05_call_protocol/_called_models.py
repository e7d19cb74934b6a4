"""The models that call_order is tried on: each calls its parts in a way that a tracer can get wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Nested(nn.Module):
    """Registers its parts in another order than it calls them, and wants a keyword argument."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = nn.Linear(width, 1)
        self.body = nn.Sequential(nn.Linear(width, width), nn.Sequential(nn.Tanh()))
        self.idle = nn.Linear(width, width)
        self.runs = 0

    def forward(self, x: torch.Tensor, *, scale: float) -> torch.Tensor:
        """Return the head's output for a scaled input."""
        self.runs += 1
        return self.head(self.body(scale * x))


class Shared(nn.Module):
    """Calls one layer twice, which is registered under two names, and one that is registered nowhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.also_layer = self.layer
        self.hidden = [nn.Linear(width, width)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer of the hidden layer of the layer."""
        return self.also_layer(self.hidden[0](self.layer(x)))


class Bypassing(nn.Module):
    """Runs the forward of its body by hand first, and calls the body properly afterwards."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.patched = nn.Identity()
        self.patched.forward = torch.neg

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the body makes of what its forward made, negated."""
        return self.patched(self.body(self.body.forward(x)))


class Refusing(nn.Module):
    """Raises ValueError."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Raise."""
        raise ValueError("refused")


class Failing(nn.Module):
    """Meets an error two levels down."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.block = nn.Sequential(nn.ReLU(), Refusing())
        self.never = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Fail in the middle."""
        return self.never(self.block(self.first(x)))


def told(events: Any) -> Any:
    """Return the events as one line that can be read in a message; anything else comes back as it is."""
    if not isinstance(events, list) or not all(isinstance(event, tuple) and len(event) == 2 for event in events):
        return events
    return " · ".join(f"{kind} {path or 'root'}" for kind, path in events) or "nothing at all"
