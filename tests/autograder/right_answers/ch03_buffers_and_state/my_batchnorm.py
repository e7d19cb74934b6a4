"""Right batch normalisations, each written in another way."""

from __future__ import annotations

import torch
from torch import nn


class WithMovedAxes(nn.Module):
    """Brings the channels to the last axis and flattens the others; lerp_ moves the buffers."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.running_mean = nn.Buffer(torch.zeros(num_features))
        self.running_var = nn.Buffer(torch.ones(num_features))
        self.num_batches_tracked = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        last = x.movedim(1, -1)
        rows = last.flatten(0, -2)
        mean, var = self.running_mean, self.running_var
        if self.training:
            if rows.shape[0] < 2:
                raise ValueError("one value per channel")
            var, mean = torch.var_mean(rows, dim=0, correction=0)
            self.num_batches_tracked.add_(1)
            share = self.momentum or 1.0 / self.num_batches_tracked.item()
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_(var.detach() * len(rows) / (len(rows) - 1), share)
        normal = (last - mean) * torch.rsqrt(var + self.eps)
        return (normal * self.weight + self.bias).movedim(-1, 1)


class WithSums(nn.Module):
    """Computes both variances from one sum of squares; copy_ writes the buffers."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = nn.Parameter(torch.full((num_features,), 1.0))
        self.bias = nn.Parameter(torch.full((num_features,), 0.0))
        for name, value in (("running_mean", torch.zeros(num_features)), ("running_var", torch.ones(num_features))):
            self.register_buffer(name, value)
        self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.long))

    def wide(self, values, x):
        return values[None, :, None] if x.ndim == 3 else values[None, :]

    def forward(self, x):
        if not self.training:
            return self.normalise(x, self.running_mean, self.running_var)
        count = x.numel() // self.num_features
        if count == 1:
            raise ValueError("training needs more than one value per channel")
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean = x.sum(axes) / count
        squares = (x - self.wide(mean, x)).square().sum(axes)
        self.remember(mean, squares / (count - 1))
        return self.normalise(x, mean, squares / count)

    @torch.no_grad()
    def remember(self, mean, var):
        self.num_batches_tracked += 1
        share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.copy_((1 - share) * self.running_mean + share * mean)
        self.running_var.copy_((1 - share) * self.running_var + share * var)

    def normalise(self, x, mean, var):
        deviation = torch.sqrt(self.wide(var, x) + self.eps)
        return self.wide(self.weight, x) * ((x - self.wide(mean, x)) / deviation) + self.wide(self.bias, x)


class WithOneFormula(nn.Module):
    """Folds weight and bias into one scale and one shift a channel; mul_ and add_ move the buffers."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.register_parameter("weight", nn.Parameter(torch.ones(num_features)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(num_features)))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.int64))

    def forward(self, x):
        axes = (0,) if x.dim() == 2 else (0, 2)
        if self.training:
            if x.numel() <= x.size(1):
                raise ValueError("Expected more than 1 value per channel")
            mean = x.mean(dim=axes)
            var = x.var(dim=axes, correction=0)
            with torch.no_grad():
                self.num_batches_tracked += 1
                factor = self.momentum
                if factor is None:
                    factor = 1.0 / float(self.num_batches_tracked)
                n = x.numel() / x.size(1)
                self.running_mean.mul_(1 - factor).add_(mean, alpha=factor)
                self.running_var.mul_(1 - factor).add_(var * n / (n - 1), alpha=factor)
        else:
            mean, var = self.running_mean, self.running_var
        scale = self.weight / (var + self.eps).sqrt()
        shift = self.bias - mean * scale
        view = (-1,) if x.dim() == 2 else (-1, 1)
        return x * scale.view(view) + shift.view(view)


right_answers = [(WithMovedAxes,), (WithSums,), (WithOneFormula,)]
