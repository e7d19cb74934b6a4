"""Right walks: a recursion, a stack, torch's own list of modules, and a list that grows."""

from __future__ import annotations


def recursive(module, prefix="", remove_duplicate=True):
    """Generators all the way down, with one set for the whole walk."""
    seen = set()

    def walk(module, path):
        for name, parameter in module._parameters.items():
            if parameter is None or (remove_duplicate and id(parameter) in seen):
                continue
            seen.add(id(parameter))
            yield f"{path}.{name}" if path else name, parameter
        for name, child in module._modules.items():
            if child is not None:
                yield from walk(child, f"{path}.{name}" if path else name)

    return walk(module, prefix)


def with_a_stack(module, prefix="", remove_duplicate=True):
    """No recursion: what is still to be visited waits on a stack, the first child on top."""
    found, waiting = [], [([prefix] if prefix else [], module)]
    while waiting:
        path, current = waiting.pop()
        for name, parameter in current._parameters.items():
            known = remove_duplicate and any(parameter is other for _, other in found)
            if parameter is not None and not known:
                found.append((".".join([*path, name]), parameter))
        for name, child in reversed(list(current._modules.items())):
            if child is not None:
                waiting.append(([*path, name], child))
    return found


def over_modules(module, prefix="", remove_duplicate=True):
    """As torch does it: over named_modules, which knows the paths already."""
    seen = set()
    for path, current in module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate):
        for name, parameter in current._parameters.items():
            if parameter is None:
                continue
            if remove_duplicate:
                if parameter in seen:
                    continue
                seen.add(parameter)
            yield (path + "." if path else "") + name, parameter


def names_from_below(module, prefix="", remove_duplicate=True):
    """Every level puts its own name before what its children report; duplicates are removed at the end."""

    def everything(module):
        pairs = [(name, parameter) for name, parameter in module._parameters.items() if parameter is not None]
        for child_name, child in module._modules.items():
            if child is not None:
                pairs += [(f"{child_name}.{name}", parameter) for name, parameter in everything(child)]
        return pairs

    pairs = [(f"{prefix}.{name}" if prefix else name, parameter) for name, parameter in everything(module)]
    if remove_duplicate:
        first = {}
        for name, parameter in pairs:
            first.setdefault(id(parameter), (name, parameter))
        pairs = list(first.values())
    return pairs


right_answers = [(recursive,), (with_a_stack,), (over_modules,), (names_from_below,)]
