"""Right ways to change an output: with and without keyword arguments, with a class, with partial."""

from __future__ import annotations

from functools import partial


def with_a_closure(model, path, change):
    def hook(module, args, output):
        if isinstance(output, tuple):
            first = change(output[0])
            if first is None:
                return output
            return (first,) + output[1:]
        return change(output)

    return model.get_submodule(path).register_forward_hook(hook)


def with_kwargs(model, path, change):
    def hook(module, args, kwargs, output):
        parts = list(output) if isinstance(output, tuple) else [output]
        answer = change(parts[0])
        if answer is not None:
            parts[0] = answer
        return tuple(parts) if isinstance(output, tuple) else parts[0]

    part = model
    for name in path.split("."):
        part = getattr(part, name)
    return part.register_forward_hook(hook, with_kwargs=True)


class Changer:
    """A hook may be any object that can be called."""

    def __init__(self, change):
        self.change = change

    def __call__(self, module, args, output):
        first, rest = (output[0], output[1:]) if type(output) is tuple else (output, None)
        changed = self.change(first)
        if changed is None:
            return None
        return changed if rest is None else (changed, *rest)


def with_an_object(model, path, change):
    try:
        part = dict(model.named_modules())[path]
    except KeyError:
        raise AttributeError(f"no module at {path!r}") from None
    return part.register_forward_hook(Changer(change))


def _change_first(change, module, args, output):
    match output:
        case (first, *rest):
            changed = change(first)
            return output if changed is None else (changed, *rest)
        case _:
            return change(output)


def with_partial(model, path, change):
    return model.get_submodule(path).register_forward_hook(partial(_change_first, change))


right_answers = [(with_a_closure,), (with_kwargs,), (with_an_object,), (with_partial,)]
