"""Right searches: one recursive, one with a work list, one that yields, one that asks torch's own dicts."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn


def find_recursively(module):
    registered = {id(part) for part in module.modules()}
    registered |= {id(parameter) for _, parameter in module.named_parameters()}
    found = []

    def look(value, path):
        if id(value) in registered:
            return
        weight = isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad
        if isinstance(value, (nn.Module, nn.Parameter)) or weight:
            found.append(path)
        elif isinstance(value, dict):
            for key, item in value.items():
                look(item, f"{path}.{key}")
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                look(item, f"{path}.{number}")

    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            look(value, f"{prefix}.{name}" if prefix else name)
    return found


def find_with_a_work_list(module):
    own = set(vars(nn.Module()))
    known = [*module.modules(), *(p for part in module.modules() for _, p in part.named_parameters(recurse=False))]
    work = [
        ([*prefix.split("."), name], value)
        for prefix, part in module.named_modules()
        for name, value in part.__dict__.items()
        if name not in own
    ]
    paths = set()
    while work:
        path, value = work.pop()
        if any(value is one for one in known):
            continue
        if isinstance(value, nn.Module):
            paths.add(".".join(path).lstrip("."))
        elif isinstance(value, torch.Tensor):
            if isinstance(value, nn.Parameter) or (value.requires_grad and value.grad_fn is None):
                paths.add(".".join(path).lstrip("."))
        elif isinstance(value, Mapping):
            work += [([*path, str(key)], item) for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            work += [([*path, str(number)], item) for number, item in enumerate(value)]
    return sorted(paths)


def _leaves(value, path):
    """Yield every module and tensor below a value, with its path."""
    if isinstance(value, (nn.Module, torch.Tensor)):
        yield ".".join(path), value
    elif isinstance(value, (list, tuple, dict)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from _leaves(item, (*path, str(key)))


def _held(module, path=()):
    for name, value in vars(module).items():
        if name != "_modules":
            yield from _leaves(value, (*path, name))
    for name, child in module.named_children():
        yield from _held(child, (*path, name))


def find_by_generator(module):
    keys = {id(tensor) for tensor in module.state_dict(keep_vars=True).values()} | set(map(id, module.modules()))

    def trained(thing):
        return isinstance(thing, (nn.Module, nn.Parameter)) or (thing.is_leaf and thing.requires_grad)

    return [path for path, thing in _held(module) if id(thing) not in keys and trained(thing)]


right_answers = [(find_recursively,), (find_with_a_work_list,), (find_by_generator,)]
