"""What somebody registered and did not take away: on a model, and in torch's global tables."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator

from torch import nn
from torch.nn.modules import module as torch_module

EVERYWHERE = "every module (a global hook)"


def registered(model: nn.Module) -> dict[str, list]:
    """Return, by path, the hooks that each module carries, whether its ``forward`` was patched, and what is global."""
    found = {path: _carried(part) for path, part in model.named_modules()}
    found[EVERYWHERE] = [
        (name, key) for name, table in vars(torch_module).items() if _is_global_table(name, table) for key in table
    ]
    return found


def changed_since(before: dict[str, list], model: nn.Module) -> list[str]:
    """Return the paths at which something was registered, or is gone, since ``before`` was taken; the root is ''."""
    now = registered(model)
    return [path for path in (*now, *(set(before) - set(now))) if before.get(path) != now.get(path)]


def _carried(part: nn.Module) -> list:
    tables = [(name, key) for name, table in vars(part).items() if name.endswith("_hooks") for key in table]
    return tables + [("forward", "patched")] * ("forward" in vars(part))


def _is_global_table(name: str, table: object) -> bool:
    return name.startswith("_global_") and "registration" not in name and isinstance(table, dict)


@contextlib.contextmanager
def global_hooks_put_back() -> Iterator[None]:
    """Leave torch's global hook tables as they were: a hook that is forgotten there would meet every later check."""
    tables = {name: table for name, table in vars(torch_module).items() if _is_global_table(name, table)}
    kept = {name: OrderedDict(table) for name, table in tables.items()}
    try:
        yield
    finally:
        for name, table in tables.items():
            table.clear()
            table.update(kept[name])
