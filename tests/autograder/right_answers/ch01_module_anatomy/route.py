"""Right routes, each written in another way."""

from __future__ import annotations

import torch
from torch import nn


def with_branches(module, name, value):
    """Torch's branches in torch's order."""
    own = vars(module)
    ready = "_parameters" in own
    if isinstance(value, nn.Parameter):
        if not ready:
            raise AttributeError("before __init__")
        if "." in name or name == "" or name in dir(type(module)):
            raise KeyError(name)
        return "_parameters"
    if ready and name in own["_parameters"]:
        if value is None:
            return "_parameters"
        raise TypeError("parameter or None")
    if isinstance(value, nn.Module):
        if not ready:
            raise AttributeError("before __init__")
        return "_modules"
    if ready and name in own["_modules"]:
        if value is None:
            return "_modules"
        raise TypeError("module or None")
    if ready and name in own["_buffers"]:
        if value is None or isinstance(value, torch.Tensor):
            return "_buffers"
        raise TypeError("tensor or None")
    if isinstance(value, nn.Buffer):
        if not ready:
            raise AttributeError("before __init__")
        if "." in name or name == "" or hasattr(module, name):
            raise KeyError(name)
        return "_buffers"
    return "__dict__"


def with_a_table(module, name, value):
    """One row a registry: what it claims by type, and what it lets in under a name that it has."""
    rows = [("_parameters", nn.Parameter, ()), ("_modules", nn.Module, ()), ("_buffers", nn.Buffer, (torch.Tensor,))]
    for registry, claimed, let_in in rows:
        kept = module.__dict__.get(registry)
        if isinstance(value, claimed):
            refuse_registration(module, kept, name, registry)
            return registry
        if kept is not None and name in kept:
            if value is not None and not isinstance(value, let_in):
                raise TypeError(f"{registry} keeps {name}")
            return registry
    return "__dict__"


def refuse_registration(module, kept, name, registry):
    if kept is None:
        raise AttributeError("no registries yet")
    if registry == "_modules" or name in kept:
        return
    if "." in name or not name or hasattr(type(module), name):
        raise KeyError(name)
    if registry == "_buffers" and name in module.__dict__:
        raise KeyError(name)


def with_a_match(module, name, value):
    """First who keeps the name, then one match over value and keeper."""
    keeper = next((k for k in ("_parameters", "_modules", "_buffers") if name in module.__dict__.get(k, {})), None)
    registers = isinstance(value, (nn.Parameter, nn.Module)) or (isinstance(value, nn.Buffer) and keeper is None)
    if registers and "_modules" not in module.__dict__:
        raise AttributeError(name)
    odd_name = "." in name or not name or hasattr(nn.Module, name)
    match value, keeper:
        case nn.Parameter(), _:
            if odd_name:
                raise KeyError(name)
            return "_parameters"
        case None, _:
            return keeper or "__dict__"
        case _, "_parameters":
            raise TypeError(name)
        case nn.Module(), _:
            return "_modules"
        case _, "_modules":
            raise TypeError(name)
        case torch.Tensor(), "_buffers":
            return "_buffers"
        case _, "_buffers":
            raise TypeError(name)
    if not isinstance(value, nn.Buffer):
        return "__dict__"
    if odd_name or name in module.__dict__:
        raise KeyError(name)
    return "_buffers"


right_answers = [(with_branches,), (with_a_table,), (with_a_match,)]
