"""The committed traces: what torch did when they were recorded. ``python -m tests.simulations.golden`` renews them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import simulations

FOLDER = Path(__file__).parent / "golden"
CLASSES = [name for name in simulations.__all__ if name != "show"]


def recorded(name: str) -> dict[str, Any]:
    """Return what a simulation records now, as plain data."""
    return json.loads(json.dumps(getattr(simulations, name)().page().as_data()))


def committed(name: str) -> dict[str, Any]:
    """Return what it recorded when the golden file was made."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def renew() -> None:
    """Write every golden file anew, an event or a node to a line, so that a difference can be read."""
    FOLDER.mkdir(exist_ok=True)
    for name in CLASSES:
        text = json.dumps(recorded(name), ensure_ascii=False, indent=None, separators=(", ", ": "))
        lines = text.replace('}, {"kind"', '},\n{"kind"').replace('}, {"id"', '},\n{"id"')
        (FOLDER / f"{name}.json").write_text(lines + "\n", encoding="utf-8")


def changes(before: Any, now: Any, place: str = "") -> list[str]:
    """Return one line for each value that differs, by its place in the trace; events are named by their sentence."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = list(dict.fromkeys([*before, *now]))
        return [line for key in keys for line in changes(before.get(key), now.get(key), f"{place}.{key}")]
    if isinstance(before, list) and isinstance(now, list):
        found = [f"{place}: {len(before)} entries, now {len(now)}"] if len(before) != len(now) else []
        for index, (one, other) in enumerate(zip(before, now, strict=False)):
            found.extend(changes(one, other, f"{place}[{index}]"))
        return found
    return [] if before == now else [f"{place}: {before!r}, now {now!r}"]


if __name__ == "__main__":
    renew()
