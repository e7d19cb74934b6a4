"""The module trees that both walks of chapter 2 are tried on, and a way to close torch's own walk meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

KINDS = ("three levels deep", "empty slots", "tied weights", "equal values", "on the meta device")


def build(kind: str, width: int, seed: int, device: str) -> nn.Module:
    """Return the tree called ``kind``, one of KINDS, with layers ``width`` wide."""
    makers = (_deep, _empty_slots, _tied, _equal_values, _tied)
    with torch.device("meta" if kind == KINDS[-1] else device):
        torch.manual_seed(seed)
        return makers[KINDS.index(kind)](width)


def _deep(width: int) -> nn.Module:
    # The root's own parameter is registered last, and still comes first in the walk.
    root, encoder, layer = nn.Module(), nn.Module(), nn.Module()
    layer.query = nn.Linear(width, width + 1)
    layer.norm = nn.BatchNorm1d(width + 1)
    encoder.layer = layer
    encoder.offset = nn.Parameter(torch.ones(width))
    root.encoder = encoder
    root.activation = nn.ReLU()
    root.head = nn.Sequential(nn.Linear(width + 1, 2), nn.ReLU(), nn.Linear(2, 1))
    root.scale = nn.Parameter(torch.ones(1))
    layer.query.weight.requires_grad_(False)
    root.head[2].bias.requires_grad_(False)
    return root


def _empty_slots(width: int) -> nn.Module:
    root = nn.Module()
    root.first = nn.Linear(width, 3, bias=False)
    root.register_parameter("gate", None)
    root.add_module("skip", None)
    root.block = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh())
    root.block.add_module("later", None)
    root.last = nn.Linear(3, width)
    return root


def _tied(width: int) -> nn.Module:
    root, decoder = nn.Module(), nn.Module()
    root.embedding = nn.Embedding(width + 3, width)
    root.shared = nn.Linear(width, width)
    decoder.again = root.shared
    decoder.output = nn.Linear(width, width + 3)
    decoder.output.weight = root.embedding.weight
    decoder.output.bias.requires_grad_(False)
    root.decoder = decoder
    root.temperature = nn.Parameter(torch.ones(1))
    root.also_temperature = root.temperature
    return root


def _equal_values(width: int) -> nn.Module:
    root = nn.Module()
    root.left, root.right = nn.LayerNorm(width), nn.LayerNorm(width)
    # Two parameters that share their memory are still two: what is one is the object.
    memory = torch.zeros(width, 2)
    root.view, root.other_view = nn.Parameter(memory), nn.Parameter(memory)
    root.inner = nn.Sequential(nn.Sequential(nn.LayerNorm(width), nn.LayerNorm(width)))
    return root


class _Closed:
    """Put before a module's class: torch's own walk stops here, with a sentence, until it is opened."""

    is_open = False

    def _refuse(self) -> None:
        if not _Closed.is_open:
            raise RuntimeError("this exercise asks for your own walk: parameters() and named_parameters() are closed")

    def parameters(self, *args: Any, **kwargs: Any) -> Iterator[nn.Parameter]:
        """Refuse, or do what the module does."""
        self._refuse()
        return super().parameters(*args, **kwargs)

    def _named_members(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        self._refuse()
        return super()._named_members(*args, **kwargs)


def closed(root: nn.Module) -> nn.Module:
    """Return the same tree with torch's own walk closed in every module of it."""
    for module in root.modules():
        kind = type(module)
        module.__class__ = type(kind.__name__, (_Closed, kind), {})
    return root


@contextmanager
def opened() -> Iterator[None]:
    """Let torch's own walk through for the moment: for the reference, and for the probe itself."""
    _Closed.is_open = True
    try:
        yield
    finally:
        _Closed.is_open = False
