"""Right dropouts, each with its own way of choosing and of dropping."""

from __future__ import annotations

import torch
from torch import nn


class WithBernoulli(nn.Module):
    """Draws as torch's CPU kernel does."""

    def __init__(self, p=0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(p)
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return torch.zeros_like(x) * x
        return x * torch.empty_like(x).bernoulli_(1 - self.p).div_(1 - self.p)


class WithWhere(nn.Module):
    """Chooses between two tensors."""

    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p is a probability")
        self.drop_probability = p

    def forward(self, x):
        if self.training:
            dropped = torch.rand(x.shape, device=x.device) < self.drop_probability
            scale = 1.0 if self.drop_probability == 1 else 1 / (1 - self.drop_probability)
            return torch.where(dropped, torch.zeros_like(x), x * scale)
        return x


class WithMaskedFill(nn.Module):
    """Fills a copy with zeros."""

    def __init__(self, p=0.5):
        super().__init__()
        if not (p >= 0 and p <= 1):
            raise ValueError("dropout probability has to be between 0 and 1")
        self.keep = 1 - p

    def forward(self, x):
        if not self.training:
            return x.clone()
        mask = torch.rand_like(x) >= self.keep
        return (x / max(self.keep, 1e-12)).masked_fill(mask, 0)


right_answers = [(WithBernoulli,), (WithWhere,), (WithMaskedFill,)]
