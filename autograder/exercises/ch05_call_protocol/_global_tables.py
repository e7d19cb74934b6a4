"""torch's global hook tables: put back as they were, so that one answer cannot disturb the next check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.nn.modules import module as torch_module


def global_tables() -> dict[str, dict[int, Any]]:
    """Return torch's own global tables of hooks and of their flags, by name."""
    return {
        name: table
        for name, table in vars(torch_module).items()
        if name.startswith("_global_") and "registration" not in name and isinstance(table, dict)
    }


@contextmanager
def global_hooks_put_back() -> Iterator[None]:
    """Leave the global tables as they were found, whatever happens inside."""
    kept = {name: dict(table) for name, table in global_tables().items()}
    try:
        yield
    finally:
        for name, table in global_tables().items():
            table.clear()
            table.update(kept[name])
