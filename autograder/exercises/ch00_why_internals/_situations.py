"""The models that find_orphans is shown: each hides something, or only looks as if it did."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import torch
from torch import nn


def _model(width: int) -> nn.Module:
    """Return a module with one registered layer, to which a situation adds its own."""
    model = nn.Module()
    model.head = nn.Linear(width, 1)
    return model


def plain_list(width: int, count: int) -> nn.Module:
    """Layers in a list, one of them a module of several layers."""
    model = _model(width)
    model.hidden = [nn.Linear(width, width) for _ in range(count)]
    model.hidden.append(nn.Sequential(nn.Linear(width, width), nn.ReLU()))
    return model


def plain_tuple(width: int, count: int) -> nn.Module:
    """Layers in a tuple."""
    model = _model(width)
    model.pair = tuple(nn.Linear(width, width) for _ in range(count))
    return model


def plain_dict(width: int, count: int) -> nn.Module:
    """Layers in a dict by name, by number, and in an OrderedDict."""
    model = _model(width)
    model.heads = {"price": nn.Linear(width, 1), "kind": nn.Linear(width, count)}
    model.by_size = OrderedDict((size, nn.Linear(size, width)) for size in range(5, 5 + count))
    return model


def nested(width: int, count: int) -> nn.Module:
    """Containers in containers, three deep."""
    model = _model(width)
    model.branches = [[nn.Linear(width, width) for _ in range(count)], {"skip": (nn.Linear(width, width), None)}]
    return model


def tensor_with_gradient(width: int, count: int) -> nn.Module:
    """Weights that are tensors: one an attribute, the others in a list."""
    model = _model(width)
    model.scale = torch.ones(width, requires_grad=True)
    model.shifts = [torch.zeros(width, requires_grad=True) for _ in range(count)]
    return model


def parameter_in_a_list(width: int, count: int) -> nn.Module:
    """Parameters in a list; the last is frozen and a parameter all the same."""
    model = _model(width)
    model.tokens = [nn.Parameter(torch.zeros(width)) for _ in range(count)]
    model.tokens.append(nn.Parameter(torch.zeros(width), requires_grad=False))
    return model


def in_children(width: int, count: int) -> nn.Module:
    """Orphans one and three registered levels down."""
    model = _model(width)
    model.block = plain_list(width, count)
    inner = nn.Module()
    inner.gates = {"open": nn.Linear(width, 1)}
    model.stack = nn.ModuleList([nn.Sequential(nn.ReLU(), inner)])
    return model


def private_attribute(width: int, count: int) -> nn.Module:
    """A list whose name starts with an underscore."""
    model = _model(width)
    model._hidden = [nn.Linear(width, width) for _ in range(count)]
    return model


class _HandWritten(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.layers = [nn.Linear(width, width) for _ in range(count)]
        self.scale = torch.ones(width, requires_grad=True)

    def parameters(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        """Return the right tensors, written by hand."""
        yield self.scale
        for layer in self.layers:
            yield from layer.parameters()


class _HeadOnly(nn.Module):
    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.body = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.temperature = nn.Parameter(torch.ones(1))
        self.head = nn.Linear(width, 1)
        self.trained_later = [*self.body, self.temperature]

    def parameters(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        """Return only what the author wants to be trained; the rest is registered too."""
        return self.head.parameters()


def shared(width: int, count: int) -> nn.Module:
    """Registered layers and weights that a list, a tuple and a dict hold as well."""
    model = _model(width)
    model.body = nn.Sequential(*(nn.Linear(width, width) for _ in range(count)))
    model.order = [model.body[0], model.head]
    model.by_name = {"head": model.head, "all": (model.body, [model.head.weight])}
    return model


def on_purpose(width: int, count: int) -> nn.Module:
    """Constants, settings and functions: plain attributes that nobody wants to train."""
    model = _model(width)
    model.mean = torch.full((width,), 0.5)
    model.table = [torch.arange(width), torch.eye(width)]
    model.settings = {"act": torch.relu, "sizes": [width, count], "name": "plain", "norm": None, "made_of": nn.Linear}
    return model


def kept_result(width: int, count: int) -> nn.Module:
    """Results of a forward pass that the model keeps to look at."""
    model = _model(width)
    model.last = model.head(torch.ones(count, width))
    model.history = [model.last * 2]
    return model


def back_reference(width: int, count: int) -> nn.Module:
    """A child that holds its parent in a list, so that torch does not walk in circles."""
    model = _model(width)
    model.child = nn.Linear(width, count)
    model.child.parent = [model]
    return model


def without_fault(width: int, count: int) -> nn.Module:
    """Every part registered, one of them long after the module was made."""
    model = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
    model.scale = nn.Parameter(torch.ones(width))
    model.later = nn.ModuleDict({"head": nn.Linear(width, count)})
    return model


SITUATIONS = {
    "layers in a plain list": plain_list,
    "layers in a tuple": plain_tuple,
    "layers in a dict": plain_dict,
    "containers inside containers": nested,
    "tensors that require a gradient": tensor_with_gradient,
    "parameters in a list": parameter_in_a_list,
    "orphans of registered children": in_children,
    "an attribute with an underscore": private_attribute,
    "parameters() written by hand": _HandWritten,
    "parameters() that leaves layers out": _HeadOnly,
    "registered layers in a list as well": shared,
    "plain on purpose": on_purpose,
    "a result that was kept": kept_result,
    "a child that knows its parent": back_reference,
    "a model without a fault": without_fault,
}
