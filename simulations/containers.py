"""Container Registration Comparison: torch's containers beside their plain twins, built from the same layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, choice, figure_png
from simulations.player import Page
from simulations.scan import add_nodes, scan
from simulations.trace import Trace

CONTAINERS = {
    "list": lambda named: list(named.values()),
    "nn.ModuleList": lambda named: nn.ModuleList(named.values()),
    "nn.Sequential": lambda named: nn.Sequential(*named.values()),
    "dict": lambda named: dict(named),
    "nn.ModuleDict": lambda named: nn.ModuleDict(named),
    "tuple": lambda named: tuple(named.values()),
}
QUESTIONS = ("children registered", "parameters found", "keys in state_dict", "moved by .double()", "can be called")


class Box(nn.Module):
    """A Module with one attribute: the container."""

    def __init__(self, container: Any) -> None:
        super().__init__()
        self.layers = container


def _build(name: str, depth: int) -> Box:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        named = {f"layer{index}": nn.Linear(4, 4) for index in range(depth)}
        return Box(CONTAINERS[name](named))


def _answers(box: Box, depth: int) -> list[tuple[bool, str]]:
    """What torch answers for one container, in the order of QUESTIONS."""
    inner = sum(1 for module in box.modules() if isinstance(module, nn.Linear))
    found = sum(1 for _ in box.parameters())
    keys = len(box.state_dict())
    held = box.layers.values() if hasattr(box.layers, "values") else box.layers
    box.double()
    moved = sum(layer.weight.dtype is torch.float64 for layer in held)
    try:
        box.layers(torch.ones(1, 4, dtype=torch.float64))
        called = (True, "yes")
    except (TypeError, NotImplementedError) as error:
        called = (False, type(error).__name__)
    counts = [(inner, depth), (found, 2 * depth), (keys, 2 * depth), (moved, depth)]
    return [*((got == whole, f"{got} of {whole}") for got, whole in counts), called]


def record(name: str, depth: int = 3) -> Trace:
    """Build a Module around one container, and ask every container the same questions."""
    box = _build(name, depth)
    total = sum(p.numel() for p in box.parameters())
    trace = Trace(
        "containers",
        "Container Registration Comparison",
        "The same layers in a container of Python and in one of torch: only what torch's own containers hold is found.",
        facts=[{"id": "found", "label": "parameters found"}, {"id": "held", "label": "numbers in the layers"}],
        pace=1000,
    )
    entries = scan(box)
    add_nodes(trace, entries)
    names = list(CONTAINERS)
    for row in range(len(names)):
        for column in range(len(QUESTIONS)):
            trace.node(f"cell:{row}:{column}", QUESTIONS[column], "cell")
    held = depth * 20
    orphans = [entry for entry in entries if not entry.registered]
    trace.event(
        "start",
        f"self.layers is {'an' if name.startswith('nn') else 'a'} {name} of {depth} Linear layers."
        + (f" {len(orphans)} things in it are invisible to torch." if orphans else " Everything in it is registered."),
        "model.layers" if any(node["id"] == "model.layers" for node in trace.nodes) else "model",
        "orphan" if orphans else "good",
        tag="built",
        facts={"found": f"{total}", "held": f"{held}"},
    )
    answers = [_answers(_build(one, depth), depth) for one in names]
    for column, question in enumerate(QUESTIONS):
        right = [names[row] for row in range(len(names)) if answers[row][column][0]]
        trace.event(
            "ask",
            f"{question}: {', '.join(right)}.",
            tag="asked",
            column=column,
            set={f"cell:{row}:{column}": {"told": _told(answers[row][column])} for row in range(len(names))},
        )
    trace.event(
        "end",
        "nn.ModuleList registers and leaves the calling to you; nn.Sequential registers and can be called.",
        tag="in short",
        tone="registered",
    )
    told = "All six, asked the same"
    trace.opens = 3
    trace.views = [
        {"kind": "grid", "above": True, "title": told, "columns": list(QUESTIONS), "rows": names},
        {"kind": "tree", "place": "left", "title": f"Module with self.layers = {name}", "tallest": 215},
        {"kind": "detail", "place": "right"},
    ]
    return trace


def _told(answer: tuple[bool, str]) -> list[str]:
    good, text = answer
    return ["good" if good else "orphan", f"{'✓' if good else '✗'} {text}"]


class Containers(Simulation):
    """The simulation of chapter 6."""

    title = "Container Registration Comparison"

    def page(self, container: str = "list", depth: int = 3) -> Page:
        """Record all containers, the chosen one selected."""
        names = list(CONTAINERS)
        return Page({name: record(name, depth) for name in names}, selected=names.index(container))

    def controls(self) -> dict[str, Any]:
        """Container and number of layers."""
        return {
            "container": choice("container", [(name, name) for name in CONTAINERS], "list"),
            "depth": amount("layers", 1, 8, 1, 3),
        }

    def plot(self, page: Page, depth: int = 3, **settings: Any) -> tuple[bytes, str]:
        """Draw how many numbers parameters() finds in each container."""
        found = {name: sum(p.numel() for p in _build(name, depth).parameters()) for name in CONTAINERS}

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            bars = axes.barh(list(found), list(found.values()), color="#0b6e63")
            axes.bar_label(bars, padding=3)
            axes.set_xlabel("numbers that parameters() finds")
            axes.invert_yaxis()

        told = ", ".join(f"{name} {count}" for name, count in found.items())
        return figure_png(draw), f"Numbers that parameters() finds: {told}"
