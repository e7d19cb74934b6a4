"""Right clippers, each with its own hook."""

from __future__ import annotations

import torch
from torch import nn


def with_clip_grad_value(model, limit):
    def hook(parameter):
        nn.utils.clip_grad_value_(parameter, limit)

    return [p.register_post_accumulate_grad_hook(hook) for p in model.parameters() if p.requires_grad]


def with_named_parameters(model, limit):
    handles = []
    for _name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue

        def hook(tensor):
            tensor.grad = torch.clamp(tensor.grad, -limit, limit)

        handles.append(parameter.register_post_accumulate_grad_hook(hook))
    return tuple(handles)


def with_the_sum_in_mind(model, limit):
    """A plain tensor hook that knows what is in .grad already: what it returns makes the sum right."""

    def watching(parameter):
        def hook(gradient):
            before = torch.zeros_like(gradient) if parameter.grad is None else parameter.grad
            return (before + gradient).clamp(-limit, limit) - before

        return parameter.register_hook(hook)

    return [watching(parameter) for parameter in model.parameters() if parameter.requires_grad]


right_answers = [(with_clip_grad_value,), (with_named_parameters,), (with_the_sum_in_mind,)]
