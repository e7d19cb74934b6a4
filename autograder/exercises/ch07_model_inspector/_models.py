"""The models that inspect_model is tried on: each holds what one kind of inspector overlooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class _Feed(nn.Module):
    def __init__(self, width: int, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.up = nn.Linear(width, 3 * width)
        self.activation = nn.ReLU()
        self.down = nn.Linear(3 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Go wide, come back, and add; the activation is called twice."""
        return x + self.activation(self.down(self.activation(self.up(self.norm(x)))))


class Residual(nn.Module):
    """Two blocks that share one norm, an own parameter at the root, a frozen bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(_Feed(width, norm) for _ in range(2))
        self.scale = nn.Parameter(torch.ones(width))
        self.blocks[1].down.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Walk over the blocks: the list itself is never called."""
        for block in self.blocks:
            x = block(x)
        return x * self.scale


class Tied(nn.Module):
    """One weight in two modules, and one module that holds a weight under two names."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(width + 5, width)
        self.mix = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.out = nn.Linear(width, width + 5)
        self.out.weight = self.embed.weight
        self.temperature = nn.Parameter(torch.ones(1))
        self.also_temperature = self.temperature

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map (n, length) token numbers to (n, length, width + 5)."""
        return self.out(self.mix(self.embed(tokens))) * self.temperature


class Statistics(nn.Module):
    """Buffers of every kind, a norm that was left in eval mode on purpose, and a hook that belongs to somebody."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.frozen_norm = nn.BatchNorm2d(width).eval()
        self.head = nn.Linear(width, 2)
        self.register_buffer("mask", torch.ones(width, 1, 1), persistent=False)
        self.register_buffer("version", torch.tensor(3))
        self.register_buffer("later", None)
        self.conv.register_forward_hook(_somebodys_hook)
        self.head.register_forward_pre_hook(_somebodys_hook)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, 2, height, width) to (n, 2)."""
        x = torch.relu(self.norm(self.conv(x)) * self.mask)
        return self.head(self.frozen_norm(x).mean((2, 3)))


def _somebodys_hook(*seen: Any) -> None:
    """Do nothing: what matters is that it is still there afterwards."""


class Recurrent(nn.Module):
    """Calls by keyword, and outputs that are tuples within tuples."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)
        self.memory = nn.LSTM(width, width + 1, batch_first=True)
        self.head = nn.Linear(width + 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, length, width) to (n, length, 2)."""
        attended, _ = self.attention(x, key=x[:, :-1], value=x[:, :-1], need_weights=False)
        sequence, _ = self.memory(x + attended)
        return self.head(input=sequence)


class Heads(nn.Module):
    """Two inputs, a dict as output, one head that nobody calls and one that is called in training mode only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"price": nn.Linear(width, 1), "kind": nn.Linear(width, 4)})
        self.helper = nn.Linear(width, 3)
        self.gate = nn.Bilinear(width, 2, width)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> dict[str, Any]:
        """Return the price, and what it was made from."""
        x = self.dropout(self.gate(x, context))
        found = {"price": self.heads["price"](x), "parts": [x, context], "name": "price"}
        if self.training:
            found["helper"] = self.helper(x)
        return found


class Broken(nn.Module):
    """A model whose second layer cannot take what the first one gives."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width).eval()
        self.second = nn.Linear(width + 1, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Raise a RuntimeError in the second layer."""
        return self.second(self.norm(self.first(x)))


def _encoder(width: int) -> nn.Module:
    return nn.TransformerEncoderLayer(2 * width, 2, width + 3, batch_first=True)


BUILDERS: dict[str, Callable[[int], nn.Module]] = {
    "a residual stack": Residual,
    "tied weights": Tied,
    "statistics and hooks": Statistics,
    "keywords and tuples": Recurrent,
    "two inputs and idle heads": Heads,
    "torch's encoder layer": _encoder,
    "a forward that breaks": Broken,
}


def build(kind: str, width: int, seed: int, device: str) -> nn.Module:
    """Return the model called ``kind``, one of BUILDERS, ``width`` wide, on a device, in training mode as built."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return BUILDERS[kind](width).to(device)
