"""What a module holds, read from the module itself: its tree, its tensors, and what it holds without registering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from simulations.trace import Trace, shape_text

DEEPEST_SEARCH = 4
LONGEST_SEARCH = 500
HOOK_TABLES = {
    "_forward_pre_hooks": "forward pre-hook",
    "_forward_hooks": "forward hook",
    "_backward_pre_hooks": "backward pre-hook",
    "_backward_hooks": "backward hook",
    "_state_dict_hooks": "state_dict hook",
    "_load_state_dict_pre_hooks": "load_state_dict pre-hook",
    "_load_state_dict_post_hooks": "load_state_dict post-hook",
}


@dataclass
class Entry:
    """One thing in a module: its path, what it is, and the object itself."""

    path: str
    parent: str
    label: str
    kind: str  # module, parameter, buffer, plain
    value: Any
    registered: bool
    persistent: bool = True
    shared_with: str | None = None
    children: int = field(default=0)


def scan(module: nn.Module, root: str = "model") -> list[Entry]:
    """Return everything a module holds, depth first: modules, parameters, buffers, and unregistered ones.

    A tensor met twice is an entry both times, the second with ``shared_with``; a module met twice is not entered
    again, as ``named_modules`` does not either.
    """
    known = {id(one) for one in module.modules()} | {id(one) for one in (*module.parameters(), *module.buffers())}
    return list(_walk(module, root, "", root, True, {}, known))


def _walk(
    module: nn.Module, path: str, parent: str, label: str, registered: bool, seen: dict[int, str], known: set[int]
) -> Iterator[Entry]:
    shared = seen.get(id(module))
    entry = Entry(path, parent, label, "module", module, registered, shared_with=shared)
    yield entry
    if shared is not None:
        return
    seen[id(module)] = path
    hidden = module._non_persistent_buffers_set
    for name, value in module._parameters.items():
        if value is not None:
            yield _tensor(f"{path}.{name}", path, name, "parameter", value, registered, True, seen)
    for name, value in module._buffers.items():
        if value is not None:
            yield _tensor(f"{path}.{name}", path, name, "buffer", value, registered, name not in hidden, seen)
    registered_names = {*module._parameters, *module._buffers, *module._modules}
    for name, value in vars(module).items():
        if name not in registered_names and not name.startswith("_"):
            yield from _orphans(value, f"{path}.{name}", path, name, seen, known, DEEPEST_SEARCH)
    for name, child in module._modules.items():
        if child is not None:
            yield from _walk(child, f"{path}.{name}", path, name, registered, seen, known)


def _tensor(
    path: str, parent: str, label: str, kind: str, value: torch.Tensor, registered: bool, persistent: bool, seen: dict
) -> Entry:
    shared = seen.get(id(value))
    seen.setdefault(id(value), path)
    return Entry(path, parent, label, kind, value, registered, persistent, shared)


def _orphans(
    value: Any, path: str, parent: str, label: str, seen: dict[int, str], known: set[int], depth: int
) -> Iterator[Entry]:
    """Entries for what torch does not see: modules and tensors in plain attributes, lists and dicts."""
    if isinstance(value, nn.Module):
        if "_modules" in vars(value) and id(value) not in seen and id(value) not in known:
            yield from _walk(value, path, parent, label, False, seen, known)
    elif isinstance(value, torch.Tensor):
        if id(value) not in seen and id(value) not in known:
            kind = "parameter" if isinstance(value, nn.Parameter) else "plain"
            # A plain tensor that asks for no gradient may be meant to be one; it is drawn, not accused.
            yield _tensor(path, parent, label, kind, value, kind == "plain" and not value.requires_grad, False, seen)
    elif isinstance(value, (list, tuple, set, frozenset, Mapping)) and depth and len(value) <= LONGEST_SEARCH:
        inner: list[Entry] = []
        for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            inner.extend(_orphans(one, f"{path}.{key}", path, str(key), seen, known, depth - 1))
        if inner:
            yield Entry(path, parent, label, "plain", value, all(entry.registered for entry in inner))
            yield from inner


def add_nodes(trace: Trace, entries: list[Entry], fold_leaves: bool = False) -> None:
    """Add a node for each entry: shape, dtype, device, memory, hooks and what is shared, as details.

    ``fold_leaves`` starts with the modules closed that hold tensors and no module.
    """
    holders = {entry.parent for entry in entries if entry.kind != "parameter" and entry.kind != "buffer"}
    for entry in entries:
        folded = fold_leaves and entry.kind == "module" and entry.path not in holders
        trace.node(
            entry.path,
            entry.label,
            entry.kind,
            entry.parent or None,
            type=_type_name(entry),
            registered=entry.registered if not _is_harmless(entry) else None,
            shape=shape_text(entry.value.shape) if isinstance(entry.value, torch.Tensor) else None,
            details=_details(entry),
            state=_first_badges(entry),
            folded=folded or None,
        )


def _is_harmless(entry: Entry) -> bool:
    return entry.kind == "plain" and entry.registered


def _type_name(entry: Entry) -> str:
    if isinstance(entry.value, torch.Tensor):
        return {"parameter": "parameter", "buffer": "buffer", "plain": "plain tensor"}[entry.kind]
    return type(entry.value).__name__


def _details(entry: Entry) -> dict[str, Any]:
    value = entry.value
    found: dict[str, Any] = {"path": entry.path, "class": type(value).__name__}
    if not entry.registered:
        found["registered"] = "no: not in parameters(), state_dict() or .to()"
    if isinstance(value, nn.Module):
        found["class"] = f"{type(value).__name__}({value.extra_repr()})" if value.extra_repr() else type(value).__name__
        own = sum(parameter.numel() for parameter in value.parameters(recurse=False))
        found["parameters"] = f"{sum(p.numel() for p in value.parameters()):,} ({own:,} of its own)"
        found["buffers"] = str(sum(1 for _ in value.buffers()))
        found["mode"] = "train" if value.training else "eval"
        if hooks := hook_names(value):
            found["hooks"] = ", ".join(hooks)
    elif isinstance(value, torch.Tensor):
        found["shape"] = shape_text(value.shape)
        found["dtype, device"] = f"{str(value.dtype).removeprefix('torch.')}, {value.device.type}"
        found["memory"] = memory_text(value.numel() * value.element_size())
        found["requires_grad"] = str(value.requires_grad)
        if entry.kind == "buffer":
            found["in state_dict"] = "yes" if entry.persistent else "no (persistent=False)"
    if entry.shared_with:
        found["same object as"] = entry.shared_with
    return found


def _first_badges(entry: Entry) -> dict[str, Any]:
    state: dict[str, Any] = {}
    if not entry.registered and not _is_harmless(entry) and entry.kind != "module":
        state["orphan"] = ["orphan", "not registered"]
    if entry.shared_with:
        state["shared"] = ["plain", "shared"]
    if entry.kind == "buffer" and not entry.persistent:
        state["persistent"] = ["buffer", "not saved"]
    if isinstance(entry.value, nn.Module) and (hooks := hook_names(entry.value)):
        state["hooks"] = ["forward", f"{len(hooks)} hook{'s' * (len(hooks) > 1)}"]
    if isinstance(entry.value, torch.Tensor) and entry.kind == "parameter" and not entry.value.requires_grad:
        state["frozen"] = ["plain", "frozen"]
    return state


def hook_names(module: nn.Module) -> list[str]:
    """Return the hooks on a module as words, in the order in which they fire: ``forward hook print_shape``."""
    found = []
    for table, word in HOOK_TABLES.items():
        for hook in getattr(module, table, {}).values():
            inner = getattr(hook, "hook", hook)
            found.append(f"{word} {getattr(inner, '__name__', type(inner).__name__)}")
    return found


def memory_text(count: int) -> str:
    """Return a number of bytes in the largest unit that keeps it at 1 or more."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"
