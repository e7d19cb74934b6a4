"""Right tracers: closures, global hooks, a profile of the stack, and wrappers that look at their caller."""

from __future__ import annotations

import contextlib
import sys

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


def with_closures(model, *args, **kwargs):
    """Two hooks and a wrapper a module, in an ExitStack that takes them away."""
    events, expected = [], []

    def watch(path, part, stack):
        def enter(module, inputs):
            events.append(("enter", path))
            expected.append(path)

        stack.enter_context(part.register_forward_pre_hook(enter))
        stack.enter_context(part.register_forward_hook(lambda *given: events.append(("leave", path)), always_call=True))
        before = dict(vars(part))
        original = part.forward

        def forward(*inputs, **options):
            if expected[-1:] == [path]:
                expected.pop()
            else:
                events.append(("bypass", path))
            return original(*inputs, **options)

        object.__setattr__(part, "forward", forward)

        def restore():
            object.__delattr__(part, "forward")
            if "forward" in before:
                object.__setattr__(part, "forward", before["forward"])

        stack.callback(restore)

    with contextlib.ExitStack() as stack:
        for path, part in model.named_modules():
            watch(path, part, stack)
        try:
            model(*args, **kwargs)
        except Exception as error:
            events.append(("error", type(error).__name__))
    return events


def with_global_hooks(model, *args, **kwargs):
    """One pair of global hooks for all, and a table of paths."""
    paths = {part: path for path, part in model.named_modules()}
    events, entered = [], set()

    def enter(module, inputs):
        if module in paths:
            events.append(("enter", paths[module]))
            entered.add(module)

    def leave(module, inputs, output):
        if module in paths:
            events.append(("leave", paths[module]))

    def wrapped(part, original):
        def forward(*inputs, **options):
            if part not in entered:
                events.append(("bypass", paths[part]))
            entered.discard(part)
            return original(*inputs, **options)

        return forward

    own = {part: part.__dict__.get("forward") for part in paths}
    handles = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    for part in paths:
        part.__dict__["forward"] = wrapped(part, part.forward)
    try:
        model(*args, **kwargs)
    except Exception as error:
        events.append(("error", error.__class__.__name__))
    for handle in handles:
        handle.remove()
    for part, forward in own.items():
        del part.__dict__["forward"]
        if forward is not None:
            part.__dict__["forward"] = forward
    return events


def by_the_caller(model, *args, **kwargs):
    """Only forward is wrapped: the code that calls it says whether torch does."""
    torchs = [nn.Module._call_impl.__code__]
    torchs += [inner for inner in torchs[0].co_consts if hasattr(inner, "co_code")]
    events, kept = [], []

    def wrapper(path, original):
        def forward(*inputs, **options):
            if sys._getframe(1).f_code not in torchs:
                events.append(("bypass", path))
                return original(*inputs, **options)
            events.append(("enter", path))
            try:
                return original(*inputs, **options)
            finally:
                events.append(("leave", path))

        return forward

    for path, part in model.named_modules():
        kept.append((part, "forward" in vars(part), part.forward))
        part.forward = wrapper(path, part.forward)
    try:
        model(*args, **kwargs)
    except Exception as error:
        events.append(("error", type(error).__name__))
    finally:
        for part, own, original in kept:
            if own:
                part.forward = original
            else:
                delattr(part, "forward")
    return events


right_answers = [(with_closures,), (with_global_hooks,), (by_the_caller,)]
