"""Right inspectors: own hooks, a deep copy that may be spoiled, and a wrapped forward with a pre-hook."""

from __future__ import annotations

import contextlib
import copy
import math

import torch


def _shapes(value):
    if isinstance(value, torch.Tensor):
        return [value.shape]
    if isinstance(value, dict):
        return _shapes(list(value.values()))
    if isinstance(value, (list, tuple)):
        return [shape for item in value for shape in _shapes(item)]
    return []


def with_own_hooks(model, *inputs):
    """One hook a module, rows first, everything put back in a finally."""
    rows, handles, modes = {}, [], []
    for path, module in model.named_modules():
        rows[path] = {
            "path": path,
            "type": module.__class__.__name__,
            "own": sum(p.numel() for p in set(module._parameters.values()) if p is not None),
            "total": sum(p.numel() for p in set(module.parameters())),
            "buffers": [name for name, buffer in module._buffers.items() if buffer is not None],
            "inputs": [],
            "outputs": [],
        }

        def write(module, args, kwargs, output, row=rows[path]):
            row["inputs"].append(_shapes(args) + _shapes(kwargs))
            row["outputs"].append(_shapes(output))

        handles.append(module.register_forward_hook(write, with_kwargs=True))
        modes.append((module, module.training))
    try:
        model.eval()
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return list(rows.values())


def on_a_copy(model, *inputs):
    """Whatever the call does, it does to a copy; the numbers come from the original."""
    duplicate = copy.deepcopy(model).eval()
    seen = {path: ([], []) for path, _ in duplicate.named_modules()}
    for path, module in duplicate.named_modules():
        module.register_forward_pre_hook(
            lambda module, args, kwargs, path=path: seen[path][0].append(_shapes((args, kwargs))), with_kwargs=True
        )
        module.register_forward_hook(lambda module, args, output, path=path: seen[path][1].append(_shapes(output)))
    with torch.inference_mode():
        duplicate(*inputs)
    table = []
    for path, module in model.named_modules():
        own = dict(module.named_parameters(recurse=False))
        everything = {id(p): math.prod(p.shape) for p in module.parameters()}
        table.append({"path": path, "type": type(module).__name__, "own": sum(p.numel() for p in own.values())})
        table[-1]["total"] = sum(everything.values())
        table[-1]["buffers"] = [name for name, _ in module.named_buffers(recurse=False)]
        table[-1]["inputs"], table[-1]["outputs"] = seen[path]
    return table


def with_a_stack(model, *inputs):
    """An ExitStack that puts things back in reverse order, filled by a walk of its own."""
    table = []

    def walk(module, path, met):
        if module in met:
            return
        met.add(module)
        table.append((path, module, []))
        for name, child in module._modules.items():
            if child is not None:
                walk(child, f"{path}.{name}" if path else name, met)

    walk(model, "", set())
    with contextlib.ExitStack() as stack, torch.no_grad():
        for _, module, calls in table:
            stack.callback(setattr, module, "training", module.training)
            stack.enter_context(
                module.register_forward_hook(
                    lambda m, args, kwargs, out, calls=calls: calls.append((_shapes([*args, kwargs]), _shapes(out))),
                    with_kwargs=True,
                )
            )
        model.eval()
        model(*inputs)
    return [
        {
            "outputs": [out for _, out in calls],
            "inputs": [into for into, _ in calls],
            "path": path,
            "type": type(module).__qualname__.rpartition(".")[2],
            "buffers": list(dict(module.named_buffers(recurse=False))),
            "total": sum(map(torch.numel, module.parameters())),
            "own": sum(map(torch.numel, module.parameters(recurse=False))),
        }
        for path, module, calls in table
    ]


right_answers = [(with_own_hooks,), (on_a_copy,), (with_a_stack,)]
