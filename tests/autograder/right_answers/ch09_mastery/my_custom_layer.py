"""Right layers, each with its own way to register and to count."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class WithRegisterCalls(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        weight = torch.empty(out_features, in_features)
        nn.init.normal_(weight, std=in_features**-0.5)
        self.register_parameter("weight", nn.Parameter(weight))
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_features)) if bias else None)
        self.register_buffer("running_count", torch.zeros((), dtype=torch.long))
        self.add_module("norm", nn.LayerNorm(out_features))

    def forward(self, x):
        if self.training:
            self.running_count.add_(1)
        return self.norm(F.linear(x, self.weight, self.bias))


class WithBufferClass(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.norm = nn.LayerNorm(out_features)
        self.running_count = nn.Buffer(torch.tensor(0, dtype=torch.int64))
        self.register_parameter("bias", None)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self):
        self.weight.normal_(0, 1 / self.weight.shape[1] ** 0.5)

    def forward(self, x):
        out = x @ self.weight.mT
        if self.bias is not None:
            out = out + self.bias
        self.running_count += int(self.training)
        return self.norm(out)


class WithEinsum(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.randn(out_features, in_features).mul_(in_features**-0.5))
        if not bias:
            self.register_parameter("bias", None)
        else:
            self.bias = nn.Parameter(torch.full((out_features,), 0.0))
        self.register_buffer("running_count", torch.tensor(0))
        self.norm = nn.LayerNorm((out_features,))

    def forward(self, x):
        out = torch.einsum("...i,oi->...o", x, self.weight)
        bias = 0 if self.bias is None else self.bias
        with torch.no_grad():
            if self.training:
                self.running_count.copy_(self.running_count + 1)
        return self.norm(out + bias)

    def extra_repr(self):
        return f"{self.in_features}, {self.out_features}"


right_answers = [(WithRegisterCalls,), (WithBufferClass,), (WithEinsum,)]
