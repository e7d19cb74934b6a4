"""Right counts: by name, by child with a memory, and by identity alone."""

from __future__ import annotations

import math


def by_name(module):
    """The first part of each name says which child it belongs to."""
    by_child = {name: 0 for name, _ in module.named_children()}
    total = trainable = 0
    for name, parameter in module.named_parameters():
        size = parameter.numel()
        total += size
        trainable += size if parameter.requires_grad else 0
        child, dot, _ = name.partition(".")
        if dot:
            by_child[child] += size
    return {"total": total, "trainable": trainable, "by_child": by_child}


def with_a_memory(module):
    """Child after child, passing over what an earlier one, or the module itself, has brought in."""
    met = set(module.parameters(recurse=False))
    by_child = {}
    for name, child in module._modules.items():
        if child is not None:
            new = [parameter for parameter in child.parameters() if parameter not in met]
            met.update(new)
            by_child[name] = sum(math.prod(parameter.shape) for parameter in new)
    return {
        "total": sum(math.prod(parameter.shape) for parameter in met),
        "trainable": sum(math.prod(parameter.shape) for parameter in met if parameter.requires_grad),
        "by_child": by_child,
    }


def with_own_walk(module):
    """No walk of torch at all: a dict from identity to the first owner."""
    owners = {}

    def collect(current, owner):
        for parameter in current._parameters.values():
            if parameter is not None:
                owners.setdefault(id(parameter), (owner, parameter))
        for name, child in current._modules.items():
            if child is not None:
                collect(child, owner or name)

    collect(module, "")
    by_child = dict.fromkeys((name for name, child in module._modules.items() if child is not None), 0)
    for owner, parameter in owners.values():
        if owner:
            by_child[owner] += parameter.nelement()
    sizes = [(parameter.nelement(), parameter.requires_grad) for _, parameter in owners.values()]
    return {
        "trainable": sum(size for size, trainable in sizes if trainable),
        "total": sum(size for size, _ in sizes),
        "by_child": by_child,
    }


right_answers = [(by_name,), (with_a_memory,), (with_own_walk,)]
