"""Right calls: in one piece, in three functions, with a stack of callbacks, and with two lists of notes."""

from __future__ import annotations

import contextlib
import functools

from torch.nn.modules import module as tables
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks


def in_one_piece(module, *args, **kwargs):
    """As torch writes it: a set of those who have had their turn."""
    result, done = None, set()
    try:
        for number, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if number in module._forward_pre_hooks_with_kwargs:
                changed = hook(module, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError("a pair is asked for")
                    args, kwargs = changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        result = module.forward(*args, **kwargs)
        for number, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
            done.add(number)
            given = (args, kwargs, result) if number in module._forward_hooks_with_kwargs else (args, result)
            changed = hook(module, *given)
            result = result if changed is None else changed
        return result
    except Exception:
        for number, hook in list(module._forward_hooks.items()):
            if number in module._forward_hooks_always_called and number not in done:
                given = (args, kwargs, result) if number in module._forward_hooks_with_kwargs else (args, result)
                with contextlib.suppress(Exception):
                    hook(module, *given)
        raise


def in_pieces(module, *args, **kwargs):
    """Small functions around a dict that holds the state of the call."""
    call = {"args": args, "kwargs": kwargs, "result": None}
    waiting = dict(module._forward_hooks)
    try:
        _prepare(module, call)
        call["result"] = module.forward(*call["args"], **call["kwargs"])
        for hook in list(tables._global_forward_hooks.values()):
            _take(call, hook(module, call["args"], call["result"]))
        while waiting:
            number = next(iter(waiting))
            _take(call, _bound(module, call, number, waiting.pop(number))())
    except Exception as error:
        for number in list(waiting):
            if number in module._forward_hooks_always_called:
                try:
                    _bound(module, call, number, waiting[number])()
                except Exception as another:
                    error.add_note(str(another))
        raise error
    return call["result"]


def _prepare(module, call):
    hooks = {**tables._global_forward_pre_hooks, **module._forward_pre_hooks}
    for number, hook in hooks.items():
        if module._forward_pre_hooks_with_kwargs.get(number):
            pair = hook(module, call["args"], call["kwargs"])
            if pair is None:
                continue
            if type(pair) is not tuple or len(pair) != 2:
                raise RuntimeError(pair)
            call["args"], call["kwargs"] = pair
            continue
        changed = hook(module, call["args"])
        if isinstance(changed, tuple):
            call["args"] = changed
        elif changed is not None:
            call["args"] = (changed,)


def _bound(module, call, number, hook):
    if number in module._forward_hooks_with_kwargs:
        return functools.partial(hook, module, call["args"], call["kwargs"], call["result"])
    return functools.partial(hook, module, call["args"], call["result"])


def _take(call, value):
    if value is not None:
        call["result"] = value


def with_a_flag(module, *args, **kwargs):
    """A finally block that asks whether it is needed, instead of an except block."""
    state = {"args": args, "kwargs": kwargs, "result": None}
    turns, well = [], False

    def run(number, hook):
        turns.append(number)
        if number in module._forward_hooks_with_kwargs:
            return hook(module, state["args"], state["kwargs"], state["result"])
        return hook(module, state["args"], state["result"])

    try:
        for hook in tuple(tables._global_forward_pre_hooks.values()):
            changed = hook(module, state["args"])
            if changed is not None:
                state["args"] = changed if isinstance(changed, tuple) else (changed,)
        for number, hook in tuple(module._forward_pre_hooks.items()):
            extra = (state["kwargs"],) if number in module._forward_pre_hooks_with_kwargs else ()
            changed = hook(module, state["args"], *extra)
            if changed is None:
                continue
            if extra:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError("None or (args, kwargs)")
                state["args"], state["kwargs"] = changed
            else:
                state["args"] = changed if isinstance(changed, tuple) else (changed,)
        state["result"] = module.forward(*state["args"], **state["kwargs"])
        for number, hook in [*tables._global_forward_hooks.items(), *module._forward_hooks.items()]:
            changed = run(number, hook)
            if changed is not None:
                state["result"] = changed
        well = True
        return state["result"]
    except BaseException as error:
        well = not isinstance(error, Exception)
        raise
    finally:
        if not well:
            for number, hook in tuple(module._forward_hooks.items()):
                if number in module._forward_hooks_always_called and number not in turns:
                    with contextlib.suppress(Exception):
                        run(number, hook)


right_answers = [(in_one_piece,), (in_pieces,), (with_a_flag,)]
