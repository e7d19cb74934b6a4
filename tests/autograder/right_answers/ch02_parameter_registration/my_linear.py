"""Right linear layers, each with its own way of making, filling and multiplying."""

from __future__ import annotations

import math

import torch
from torch import nn


class WithUniform(nn.Module):
    """Draws between two bounds and multiplies with the transpose."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features = in_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1 / math.sqrt(self.in_features)
        with torch.no_grad():
            self.weight.uniform_(-bound, bound)
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class WithInit(nn.Module):
    """Uses torch.nn.init as torch does, and einsum."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.zeros(out_features, in_features)))
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_features)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.size(1)
            nn.init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def forward(self, x):
        y = torch.einsum("...i,oi->...o", x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        return y


class WithData(nn.Module):
    """Fills through .data, and multiplies and sums without a matrix product."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(out_features, in_features))
        self.bias = nn.Parameter(torch.ones(out_features))
        if not bias:
            self.bias = None
        self.reset_parameters()

    def reset_parameters(self):
        bound = self.weight.shape[1] ** -0.5
        for parameter in self.parameters():
            parameter.data.copy_(torch.empty(parameter.shape).uniform_(-bound, bound))

    def forward(self, x):
        y = (x.unsqueeze(-2) * self.weight).sum(-1)
        return y + self.bias if self.bias is not None else y


class WithAddmm(nn.Module):
    """Flattens to rows, adds and multiplies in one call, and folds back."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        bound = in_features**-0.5
        self.bound = bound
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        drawn = torch.empty(out_features).uniform_(-bound, bound) if bias else None
        self.register_parameter("bias", nn.Parameter(drawn) if bias else None)

    @torch.no_grad()
    def reset_parameters(self):
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                parameter.copy_(torch.empty(parameter.shape).uniform_(-self.bound, self.bound))

    def forward(self, x):
        rows = x.reshape(-1, self.weight.shape[1])
        if self.bias is None:
            y = rows.matmul(self.weight.t())
        else:
            y = torch.addmm(self.bias, rows, self.weight.t())
        return y.reshape(*x.shape[:-1], -1)


right_answers = [(WithUniform,), (WithInit,), (WithData,), (WithAddmm,)]
