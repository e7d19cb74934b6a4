"""Right prunings, each with its own way to stay in force."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrize


def with_a_mask_buffer(layer, amount):
    norms = torch.linalg.vector_norm(layer.weight.detach().flatten(start_dim=1), dim=1)
    weakest = torch.topk(norms, round(amount * norms.numel()), largest=False).indices
    mask = torch.ones_like(norms)
    mask[weakest] = 0.0
    if hasattr(layer, "channel_mask"):
        layer.channel_mask.mul_(mask)
        apply(layer, None)
    else:
        layer.register_buffer("channel_mask", mask)
        layer.register_forward_pre_hook(apply)
    return sorted(weakest.tolist())


def apply(module, args):
    with torch.no_grad():
        module.weight.mul_(module.channel_mask.view(-1, *(1,) * (module.weight.dim() - 1)))


class _Masked(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight):
        return weight * self.mask


def with_a_parametrization(layer, amount):
    squares = layer.weight.detach().square()
    sums = squares.sum(dim=list(range(1, squares.dim())))
    order = sorted(range(len(sums)), key=lambda channel: sums[channel].item())
    pruned = sorted(order[: round(amount * len(order))])
    mask = torch.ones_like(squares)
    mask[pruned] = 0
    parametrize.register_parametrization(layer, "weight", _Masked(mask))
    return pruned


def with_data(layer, amount):
    rows = layer.weight.data.reshape(layer.weight.shape[0], -1)
    norms = [float(row.norm()) for row in rows]
    number = round(amount * len(norms))
    pruned = tuple(sorted(sorted(range(len(norms)), key=norms.__getitem__)[:number]))

    def before_forward(module, inputs):
        for channel in pruned:
            module.weight.data[channel].zero_()

    layer.register_forward_pre_hook(before_forward, prepend=True)
    return list(pruned)


right_answers = [(with_a_mask_buffer,), (with_a_parametrization,), (with_data,)]
