"""Right residual stacks: a zip, an index, and blocks of their own behind the same names."""

from __future__ import annotations

import itertools

import torch
from torch import nn


class WithZip(nn.Module):
    """Walks over both lists at once."""

    def __init__(self, features, depth):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(features) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(depth))

    def forward(self, x, return_all=False):
        values = [x]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(torch.relu(norm(x)))
            values.append(x)
        return values if return_all else x


class WithIndex(nn.Module):
    """Appends pair by pair, and indexes."""

    def __init__(self, features, depth):
        super().__init__()
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for _ in range(depth):
            self.layers.append(nn.Linear(features, features))
            self.norms.append(nn.LayerNorm(features))

    def forward(self, x, return_all=False):
        seen = [x]
        for number in range(len(self.layers)):
            branch = self.norms[number](seen[-1]).clamp(min=0)
            seen.append(torch.add(self.layers[number](branch), seen[-1]))
        if return_all:
            return seen
        return seen[-1]


class _Step(nn.Module):
    def __init__(self, norm, layer):
        super().__init__()
        self.norm, self.layer, self.bend = norm, layer, nn.ReLU()

    def forward(self, x):
        return x + self.layer(self.bend(self.norm(x)))


class WithSteps(nn.Module):
    """Builds a step from the two registered parts when it needs one, and accumulates."""

    def __init__(self, features, depth):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(features) for _ in range(depth)])
        self.layers = nn.ModuleList([nn.Linear(features, features) for _ in range(depth)])

    def forward(self, x, return_all=False):
        steps = [_Step(norm, layer) for norm, layer in zip(self.norms, self.layers, strict=True)]
        values = list(itertools.accumulate(steps, lambda value, step: step(value), initial=x))
        return tuple(values) if return_all else values[-1]


right_answers = [(WithZip,), (WithIndex,), (WithSteps,)]
