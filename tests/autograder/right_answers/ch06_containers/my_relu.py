"""Right ReLUs: chosen, filled, indexed, and with a backward of its own."""

from __future__ import annotations

import torch
from torch import nn


class WithWhere(nn.Module):
    """Chooses zero where x is not positive; nan answers no and stays."""

    def forward(self, x):
        return torch.where(x <= 0, torch.zeros_like(x), x)


class WithMaskedFill(nn.Module):
    """Fills a copy."""

    def __init__(self):
        super().__init__()
        self.floor = 0.0

    def forward(self, x):
        return x.masked_fill(x <= self.floor, self.floor)


class WithIndexing(nn.Module):
    """Writes into a clone."""

    def forward(self, x):
        result = x.clone()
        result[x <= 0] = 0
        return result


class _Rectify(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * (y > 0)


class WithFunction(nn.Module):
    """Uses clamp for the values and its own rule for the gradient."""

    def forward(self, x):
        return _Rectify.apply(x)


right_answers = [(WithWhere,), (WithMaskedFill,), (WithIndexing,), (WithFunction,)]
