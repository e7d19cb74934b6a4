"""Module Internal Structure: what torch's own __setattr__ does with each value, and where the value then lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from simulations.call_or_forward import source_of, watch_lines
from simulations.live import Simulation, choice
from simulations.player import Page
from simulations.trace import Trace, shape_text

FUNCTIONS = {"__setattr__": nn.Module.__setattr__, "__delattr__": nn.Module.__delattr__}
BINS = {
    "_parameters": "dict of Parameters: trained, moved, saved",
    "_buffers": "dict of buffers: moved, saved unless not persistent",
    "_modules": "dict of child modules",
    "__dict__": "everything else: torch does not look here",
}
PAINTS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "registered", "__dict__": "plain"}
STATEMENTS: dict[str, Callable[[nn.Module], Any]] = {
    "self.fc = nn.Linear(3, 2)": lambda self: setattr(self, "fc", nn.Linear(3, 2)),
    "self.scale = nn.Parameter(torch.ones(2))": lambda self: setattr(self, "scale", nn.Parameter(torch.ones(2))),
    'self.register_buffer("mean", torch.zeros(2))': lambda self: self.register_buffer("mean", torch.zeros(2)),
    "self.mask = torch.ones(2)": lambda self: setattr(self, "mask", torch.ones(2)),
    "self.layers = [nn.Linear(2, 2)]": lambda self: setattr(self, "layers", [nn.Linear(2, 2)]),
    'self.name = "encoder"': lambda self: setattr(self, "name", "encoder"),
    "self.mean = torch.ones(2)": lambda self: setattr(self, "mean", torch.ones(2)),
    "self.scale = None": lambda self: setattr(self, "scale", None),
    "self.scale = torch.ones(2)": lambda self: setattr(self, "scale", torch.ones(2)),
    "self.fc = 3": lambda self: setattr(self, "fc", 3),
    "del self.fc": lambda self: delattr(self, "fc"),
}
TOURS = {
    "six values, four homes": list(STATEMENTS)[:6],
    "a name that is taken": [
        'self.register_buffer("mean", torch.zeros(2))',
        "self.mean = torch.ones(2)",
        "self.scale = nn.Parameter(torch.ones(2))",
        "self.scale = None",
        "self.scale = torch.ones(2)",
        "self.fc = nn.Linear(3, 2)",
        "self.fc = 3",
        "del self.fc",
    ],
}


def record(tour: str) -> Trace:
    """Run the statements of a tour on a real Module and record the lines of ``__setattr__`` that they execute."""
    trace = Trace(
        "module_structure",
        "Module Internal Structure",
        "An assignment to self runs torch's __setattr__: it asks what the value is and puts it into one of four homes.",
        facts=[{"id": "lines", "label": "lines of torch run"}, {"id": "home", "label": "it went to"}],
        pace=700,
    )
    module = nn.Module()
    trace.sources = [source_of(name, function) for name, function in FUNCTIONS.items()]
    own = set(vars(module))
    for name in dict.fromkeys(_names(TOURS[tour])):
        trace.node(name, name, "entry")
    trace.event("start", "super().__init__() has made the homes. All are empty.", tag="start", facts={"lines": 0})
    for statement in TOURS[tour]:
        _run(trace, module, statement, own)
    trace.opens = [index for index, event in enumerate(trace.events) if event["kind"] == "route"][4]
    trace.views = [
        {"kind": "bins", "above": True, "title": "Where the values lie now",
         "bins": [{"id": name, "says": words} for name, words in BINS.items()]},
        {"kind": "code", "source": 0, "title": "torch's __setattr__, as it is installed here",
         "tallest": 300, "condense": True},
    ]  # fmt: skip
    return trace


def _names(statements: list[str]) -> list[str]:
    names = []
    for statement in statements:
        if "register_buffer" in statement:
            names.append(statement.split('"')[1])
        else:
            names.append(statement.removeprefix("del ").removeprefix("self.").split(" ")[0])
    return names


def _run(trace: Trace, module: nn.Module, statement: str, own: set[str]) -> None:
    failure: list[str] = []

    def act() -> None:
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            try:
                STATEMENTS[statement](module)
            except (TypeError, KeyError, AttributeError) as error:
                failure.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")

    executed = watch_lines(act, FUNCTIONS)
    places = {name: index for index, name in enumerate(FUNCTIONS)}
    for count, (name, line) in enumerate(executed, start=1):
        text = trace.sources[places[name]]["lines"][line].strip()
        trace.event("line", f"{statement}   runs   {text}", tag=name, tone="forward", level=2,
                    line=[places[name], line], facts={"lines": count})  # fmt: skip
    (name,) = _names([statement])
    now = _lies(module, name, own)
    home = now["bins"][0] if now["bins"] else "nowhere"
    run = [[places[one], line] for one, line in executed]
    if failure:
        said, tone = f"{statement} is refused. {failure[0]}", "orphan"
    else:
        said = f"{statement} ran {len(executed)} lines; {name} now lies in {home}." if executed else (
            f"{statement} does not go through __setattr__; {name} now lies in {home}."
        )  # fmt: skip
        tone = PAINTS.get(home, "plain")
        if now["bins"] == []:
            said = f"{statement}: {name} is gone."
    if now["text"] == "None" and not failure:
        said += " The name stays, with None in it."
    trace.event("route", said, name, tone, tag="refused" if failure else "routed", set={name: now}, run=run,
                facts={"lines": len(executed), "home": "refused" if failure else home})  # fmt: skip


def _lies(module: nn.Module, name: str, own: set[str]) -> dict[str, Any]:
    bins, text = [], ""
    for bin_name in ("_parameters", "_buffers", "_modules"):
        table = vars(module)[bin_name]
        if name in table:
            bins.append(bin_name)
            text = _short(table[name])
    if name in vars(module) and name not in own:
        bins.append("__dict__")
        text = _short(vars(module)[name])
    return {"bins": bins, "text": text, "paints": [PAINTS[one] for one in bins]}


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return shape_text(value.shape)
    return "None" if value is None else type(value).__name__


class ModuleStructure(Simulation):
    """The simulation of chapter 1."""

    title = "Module Internal Structure"

    def page(self, tour: str = "six values, four homes") -> Page:
        """Record both tours, the chosen one first."""
        return Page({name: record(name) for name in sorted(TOURS, key=lambda name: name != tour)})

    def controls(self) -> dict[str, Any]:
        """Which tour to record again on a new Module."""
        return {"tour": choice("statements", [(name, name) for name in TOURS], "six values, four homes")}
