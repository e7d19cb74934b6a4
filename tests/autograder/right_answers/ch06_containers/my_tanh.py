"""Right tanhs: a bounded exp, a stretched sigmoid, expm1 on two safe branches, and a backward of its own."""

from __future__ import annotations

import torch
from torch import nn


class WithClamp(nn.Module):
    """Keeps exp(2x) finite; beyond 20 the value is 1 in float64 too."""

    def forward(self, x):
        grown = torch.exp(2 * x.clamp(-20, 20))
        return (grown - 1) / (grown + 1)


class WithSigmoid(nn.Module):
    """A sigmoid, twice as high and twice as steep."""

    def forward(self, x):
        return 2 * torch.sigmoid(2 * x) - 1


class WithTextbook(nn.Module):
    """The formula, with its input kept in range."""

    def forward(self, x):
        x = x.clamp(min=-40, max=40)
        up, down = x.exp(), (-x).exp()
        return (up - down) / (up + down)


class WithExpm1(nn.Module):
    """Exact near zero; each side sees only numbers that are safe for it."""

    def forward(self, x):
        left = torch.expm1(2 * torch.where(x >= 0, torch.zeros_like(x), x))
        right = torch.expm1(-2 * torch.where(x >= 0, x, torch.zeros_like(x)))
        return torch.where(x >= 0, -right / (right + 2), left / (left + 2))


class _Bend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 - 2 / (torch.exp(2 * x) + 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * (1 - y * y)


class WithFunction(nn.Module):
    """A form whose value is right everywhere, with its own rule for the gradient."""

    def forward(self, x):
        return _Bend.apply(x)


right_answers = [(WithClamp,), (WithSigmoid,), (WithTextbook,), (WithExpm1,), (WithFunction,)]
