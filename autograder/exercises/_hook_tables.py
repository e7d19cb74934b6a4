"""The tables that hold hooks, a module's own and torch's global ones: what changed in them, and putting them back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

EVERYWHERE = "every module (a global hook)"


def registered(model: nn.Module) -> dict[str, list]:
    """Return, by path, the hooks that each module carries and the ``forward`` on its instance, and what is global."""
    found = {path: _carried(part) for path, part in model.named_modules()}
    found[EVERYWHERE] = [(name, key) for name, table in _global_tables().items() for key in table]
    return found


def changed_since(before: dict[str, list], model: nn.Module) -> list[str]:
    """Return the paths at which something was registered, or is gone, since ``before`` was taken; the root is ''."""
    now = registered(model)
    return [path for path in (*now, *(set(before) - set(now))) if before.get(path) != now.get(path)]


def _carried(part: nn.Module) -> list:
    found = [(name, key) for name, table in vars(part).items() if name.endswith("_hooks") for key in table]
    found += [(name, id(value)) for name, value in vars(part).items() if name == "forward"]
    return found


def _global_tables() -> dict[str, dict[int, Any]]:
    """Return torch's own global tables of hooks and of their flags, by name."""
    return {
        name: table
        for name, table in vars(torch_module).items()
        if name.startswith("_global_") and "registration" not in name and isinstance(table, dict)
    }


@contextlib.contextmanager
def global_hooks_put_back() -> Iterator[None]:
    """Leave torch's global tables as they were: a hook that is forgotten there would meet every later check."""
    kept = {name: dict(table) for name, table in _global_tables().items()}
    try:
        yield
    finally:
        for name, table in _global_tables().items():
            table.clear()
            table.update(kept[name])
