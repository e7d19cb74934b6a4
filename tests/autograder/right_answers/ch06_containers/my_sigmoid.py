"""Right sigmoids: a bounded exp, a tanh, two safe branches, a logarithm, and a backward of its own."""

from __future__ import annotations

import torch
from torch import nn


class WithClamp(nn.Module):
    """Keeps exp finite; beyond 80 nothing changes that float32 could show."""

    def forward(self, x):
        return 1 / (1 + torch.exp(-x.clamp(-80, 80)))


class WithTanh(nn.Module):
    """The same curve, moved and stretched."""

    def forward(self, x):
        return 0.5 * (torch.tanh(x / 2) + 1)


class WithTwoSafeBranches(nn.Module):
    """Gives each branch only numbers that are safe for it."""

    def forward(self, x):
        positive = x >= 0
        left = torch.exp(torch.where(positive, torch.zeros_like(x), x))
        right = torch.exp(-torch.where(positive, x, torch.zeros_like(x)))
        return torch.where(positive, 1 / (1 + right), left / (1 + left))


class WithLogarithm(nn.Module):
    """Adds the logarithms, which cannot overflow."""

    def forward(self, x):
        return torch.exp(-torch.logaddexp(torch.zeros_like(x), -x))


class _Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y * (1 - y)


class WithFunction(nn.Module):
    """The textbook's value is right everywhere; only its gradient needs a rule of its own."""

    def forward(self, x):
        return _Squash.apply(x)


right_answers = [(WithClamp,), (WithTanh,), (WithTwoSafeBranches,), (WithLogarithm,), (WithFunction,)]
