"""Right models, each registering its parts in its own way."""

from __future__ import annotations

import torch
from torch import nn


class Containers(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.scale = nn.Parameter(torch.ones(width))
        self.heads = nn.ModuleDict({"price": nn.Linear(width, 1), "kind": nn.Linear(width, 3)})

    def forward(self, x):
        x = torch.relu(self.entry(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = x * self.scale
        return {name: head(x) for name, head in self.heads.items()}


class ByMethods(nn.Module):
    """Registers through torch's methods, in another order, and keeps a sequence that it walks itself."""

    def __init__(self, features, width, depth):
        super().__init__()
        self.heads = nn.ModuleDict()
        self.heads.add_module("kind", nn.Linear(width, 3))
        self.heads.add_module("price", nn.Linear(width, 1))
        self.register_parameter("scale", nn.Parameter(torch.empty(width)))
        nn.init.ones_(self.scale)
        self.add_module("hidden", nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)]))
        self.add_module("entry", nn.Linear(features, width))

    def forward(self, x):
        for layer in (self.entry, *self.hidden):
            x = layer(x).clamp(min=0)
        return {"price": self.heads["price"](x.mul(self.scale)), "kind": self.heads["kind"](x.mul(self.scale))}


class _Heads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.price, self.kind = nn.Linear(width, 1), nn.Linear(width, 3)

    def __getitem__(self, name):
        return getattr(self, name)

    def forward(self, x):
        return dict(price=self.price(x), kind=self.kind(x))


class _Stack(nn.Module):
    """Children that are called by numbers, without a container of torch's."""

    def __init__(self, width, depth):
        super().__init__()
        for number in range(depth):
            setattr(self, str(number), nn.Linear(width, width))

    def __iter__(self):
        return self.children()

    def __getitem__(self, number):
        return getattr(self, str(number))


class OwnContainers(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 1.0), requires_grad=True)
        self.entry, self.hidden, self.heads = nn.Linear(features, width), _Stack(width, depth), _Heads(width)

    def forward(self, x):
        x = self.entry(x).relu()
        for layer in self.hidden:
            x = layer(x).relu()
        return self.heads(self.scale * x)


class Appended(nn.Module):
    """Grows its list one layer at a time, and keeps plain names for what is registered elsewhere."""

    def __init__(self, features, width, depth):
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.hidden = nn.ModuleList()
        while len(self.hidden) < depth:
            self.hidden.append(nn.Linear(width, width))
        self.scale = nn.Parameter(torch.zeros(width) + 1)
        self.heads = nn.ModuleDict()
        for name, size in (("price", 1), ("kind", 3)):
            self.heads[name] = nn.Linear(width, size)
        self.steps = [self.entry, *self.hidden]

    def forward(self, x):
        for layer in self.steps:
            x = nn.functional.relu(layer(x))
        return {name: self.heads[name](x * self.scale) for name in ("price", "kind")}


right_answers = [(Containers,), (ByMethods,), (OwnContainers,), (Appended,)]
