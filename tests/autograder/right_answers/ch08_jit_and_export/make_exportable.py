"""Right ways to an exportable router: a subclass, a borrowed forward, branches as functions, and nested modules."""

from __future__ import annotations

import copy
import types

import torch
from torch import nn
from torch.export import Dim, export


class WithCond(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.dropout, self.calm, self.loud, self.threshold = model.dropout, model.calm, model.loud, model.threshold

    def forward(self, x):
        x = self.dropout(x)
        return torch.cond(x.abs().mean() > self.threshold, self.loud, self.calm, (x,))


def from_its_children(model, example):
    exportable = WithCond(copy.deepcopy(model)).eval()
    rows = torch.cat([example, example])
    return export(exportable, (rows,), dynamic_shapes={"x": {0: Dim.DYNAMIC}})


def with_a_borrowed_forward(model, example):
    def forward(self, rows):
        rows = self.dropout(rows)
        return torch.cond(
            rows.abs().sum() <= self.threshold * rows.numel(),
            lambda inner: self.calm(inner),
            lambda inner: self.loud(inner),
            (rows,),
        )

    mine = copy.deepcopy(model)
    mine.eval()
    mine.forward = types.MethodType(forward, mine)
    width = example.shape[1]
    return export(mine, (example.new_zeros(7, width),), dynamic_shapes=({0: Dim("rows", min=1)},))


class ByName(nn.Module):
    def __init__(self, features, hidden, threshold):
        super().__init__()
        self.calm = nn.Linear(features, 2)
        self.loud = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 2))
        self.register_buffer("limit", torch.tensor(threshold), persistent=False)

    def forward(self, x):
        def quiet(t):
            return nn.functional.linear(t, self.calm.weight, self.calm.bias)

        def noisy(t):
            return self.loud[2](torch.relu(self.loud[0](t)))

        return torch.cond((x.abs().mean() - self.limit) > 0, noisy, quiet, operands=[x])


def with_loaded_weights(model, example):
    built = ByName(model.calm.in_features, model.loud[0].out_features, model.threshold).to(example.device)
    built.load_state_dict(model.state_dict())
    shown = example.repeat(3, 1)
    return export(built.eval(), (shown,), dynamic_shapes={"x": {0: Dim.AUTO}})


def with_mode_put_back(model, example):
    mode = model.training
    model.eval()
    try:
        return export(WithCond(model).eval(), (example.expand(2, -1) if len(example) == 1 else example,),
                      dynamic_shapes={"x": [Dim.AUTO, Dim.STATIC]})  # fmt: skip
    finally:
        model.train(mode)


right_answers = [(from_its_children,), (with_a_borrowed_forward,), (with_loaded_weights,), (with_mode_put_back,)]
