"""Leaving a module exactly as it was: its tensors, gradients, hooks, attributes, mode and the random states."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import torch
from torch import nn

_TABLES = ("_parameters", "_buffers", "_modules")
LARGEST_COPY = 400_000_000


class CannotRecord(Exception):
    """This object cannot be recorded; the message is one sentence for the learner."""


def refuse(module: object) -> str | None:
    """Return one sentence on why this object cannot be recorded, or None."""
    if isinstance(module, type):
        return f"{module.__name__} is a class; build one first: show({module.__name__}(…), …)"
    if not isinstance(module, nn.Module):
        return f"a Module is needed, and this is an object of type {type(module).__name__}"
    if "_modules" not in vars(module):
        return f"{type(module).__name__}.__init__ has not called super().__init__(), so nothing can be registered yet"
    if isinstance(module, torch.jit.ScriptModule):
        return "a ScriptModule runs outside Python, so its inside cannot be watched; show the module it was made from"
    if type(module).__name__ == "OptimizedModule":
        return "a compiled module hides its inside; show the module it was made from, which is in its _orig_mod"
    for path, child in module.named_modules():
        name = f"{path} ({type(child).__name__})" if path else type(child).__name__
        if isinstance(child, torch.jit.ScriptModule):
            return f"{name} is a ScriptModule, which runs outside Python and cannot be watched"
        if isinstance(child, nn.modules.lazy.LazyModuleMixin) and child.has_uninitialized_params():
            return f"{name} is lazy and has no shapes yet; call the module once before you show it"
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.device.type == "meta" for tensor in tensors):
        return f"{type(module).__name__} lies on the meta device: it has shapes and no values, so it cannot be called"
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: sums are then added in one order, so that a recording shows the same digits everywhere."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def preserved(module: nn.Module) -> Iterator[None]:
    """Put the module and the random states back to what they were, whatever happens inside.

    Attributes that the module rebinds are put back; a list or dict that it changes in place is not. The tensors of a
    module with more than 400 million values are not copied, so that memory does not double: only buffers are.
    """
    modules = list(module.modules())
    attributes = [{k: v for k, v in vars(one).items()} for one in modules]
    tables = [
        {name: dict(table) for name, table in vars(one).items() if name in _TABLES or name.endswith("_hooks")}
        for one in modules
    ]
    tensors = [*module.parameters(), *module.buffers()]
    small = sum(tensor.numel() for tensor in module.parameters()) <= LARGEST_COPY
    copied = [(tensor, tensor.detach().clone()) for tensor in (tensors if small else module.buffers())]
    gradients = [(tensor, tensor.grad, None if tensor.grad is None else tensor.grad.clone()) for tensor in tensors]
    needed = [(tensor, tensor.requires_grad) for tensor in tensors]
    python_state, grad_mode, default = random.getstate(), torch.is_grad_enabled(), torch.get_default_dtype()
    generators = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(generators), one_thread():
        try:
            yield
        finally:
            random.setstate(python_state)
            torch.set_grad_enabled(grad_mode)
            torch.set_default_dtype(default)
            for one, kept, held in zip(modules, attributes, tables, strict=True):
                vars(one).clear()
                vars(one).update(kept)
                for name, table in held.items():
                    vars(one)[name].clear()
                    vars(one)[name].update(table)
            with torch.no_grad():
                for tensor, values in copied:
                    if tensor.shape == values.shape and tensor.dtype == values.dtype:
                        if not torch.equal(tensor.detach(), values):
                            tensor.copy_(values)
                    else:
                        tensor.data = values
                for tensor, gradient, values in gradients:
                    tensor.grad = gradient
                    if gradient is not None:
                        gradient.copy_(values)
            for tensor, flag in needed:
                if tensor.requires_grad != flag and tensor.is_leaf:
                    tensor.requires_grad_(flag)
