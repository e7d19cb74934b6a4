"""__call__ vs .forward(): the statements of torch's own source that really run for each way of calling a layer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, switch
from simulations.player import Page
from simulations.trace import Trace

FUNCTIONS = {
    "__call__": nn.Module._wrapped_call_impl,
    "_call_impl": nn.Module._call_impl,
    "forward": nn.Linear.forward,
}
WAYS = ("layer(x), no hooks", "layer(x), with hooks", "layer.forward(x), with hooks")


def watch_lines(action: Callable[[], Any], functions: dict[str, Callable]) -> list[tuple[str, int]]:
    """Run ``action`` and return the lines executed in these functions, in order, as (name, line from 0).

    Uses sys.settrace and puts the previous trace function (a debugger, a coverage tool) back.
    """
    wanted = {code: (name, f.__code__.co_firstlineno) for name, f in functions.items() for code in _codes(f.__code__)}
    seen: list[tuple[str, int]] = []

    def follow(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code not in wanted:
            return None
        if event == "line":
            name, first = wanted[frame.f_code]
            seen.append((name, frame.f_lineno - first))
        return follow

    previous = sys.gettrace()
    sys.settrace(follow)
    try:
        action()
    finally:
        sys.settrace(previous)
    return seen


def _codes(code: Any) -> list[Any]:
    """Return a code object and those of the functions defined inside it, which its source shows as well."""
    inner = [one for constant in code.co_consts if hasattr(constant, "co_code") for one in _codes(constant)]
    return [code, *inner]


def source_of(name: str, function: Callable) -> dict[str, Any]:
    """Return a function's real source for the player: title and lines, without the indentation they share."""
    lines = inspect.getsource(function).rstrip().splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return {"title": name, "lines": [line[indent:] for line in lines], "numbered": False}


def record(way: str) -> Trace:
    """Call one real layer in one of the three ways and record every line executed."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        layer = nn.Linear(3, 2)
        x = torch.randn(4, 3)
    fired: list[str] = []
    if "with hooks" in way:
        layer.register_forward_pre_hook(lambda module, inputs: fired.append("forward pre-hook"))
        layer.register_forward_hook(lambda module, inputs, output: fired.append("forward hook"))
    call = layer.forward if ".forward" in way else layer
    executed = watch_lines(lambda: call(x), FUNCTIONS)
    hooks_fired = list(fired)
    # What a call of the layer itself runs is the measure of what .forward() leaves out.
    whole = watch_lines(lambda: layer(x), FUNCTIONS)
    return _told(way, executed, hooks_fired, set(whole) - set(executed))


def _told(way: str, executed: list[tuple[str, int]], fired: list[str], left_out: set[tuple[str, int]]) -> Trace:
    trace = Trace(
        "call_or_forward",
        "__call__ vs .forward() Execution",
        "Calling the layer goes through _call_impl: without hooks it leaves after one question, with hooks it does the "
        "long way. Calling .forward() yourself skips all of it, and the hooks with it.",
        facts=[{"id": "lines", "label": "lines of torch run"}, {"id": "hooks", "label": "hooks fired"}],
        pace=420,
        even=True,
    )
    trace.sources = [source_of(name, function) for name, function in FUNCTIONS.items()]
    places = {name: index for index, name in enumerate(FUNCTIONS)}
    said = way.split(",")[0]
    trace.event("start", f"{said} is about to run.", tag="call", facts={"lines": 0, "hooks": 0})
    entered, ran = "", set()
    for name, line in executed:
        ran.add((name, line))
        text = trace.sources[places[name]]["lines"][line].strip()
        trace.event(
            "line",
            f"{name}: {text}",
            tag=name,
            tone="registered" if name == "_call_impl" else "forward",
            line=[places[name], line],
            facts={"lines": len(ran)},
            level=1 if name != entered else 2,
        )
        entered = name
    for count, name in enumerate(fired, start=1):
        trace.event("hook", f"The {name} has fired.", tag="hook", tone="good", facts={"hooks": count})
    words = f"{said}: {_count(len(ran), 'line')} of torch ran and {_count(len(fired), 'hook')} fired."
    if left_out:
        words += f" The {_count(len(left_out), 'marked line')} would have run for layer(x), and with them the hooks."
    elif not fired:
        words += " One question of _call_impl, whether there is any hook, and forward is called."
    trace.event(
        "end",
        words,
        tag="end",
        tone="orphan" if left_out else "good",
        run=[[places[name], line] for name, line in sorted(ran)],
        missed=[[places[name], line] for name, line in sorted(left_out)],
        facts={"hooks": len(fired)},
    )
    views = (
        ("left", 1, "torch's _call_impl, as it is installed here", 380),
        ("right", 0, "what layer(...) enters first: _wrapped_call_impl", 200),
        ("right", 2, "nn.Linear.forward", 200),
    )
    trace.opens = -1
    trace.views = [
        {"kind": "code", "place": place, "source": source, "title": title, "tallest": tallest, "condense": source == 1}
        for place, source, title, tallest in views
    ]
    return trace


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


class CallOrForward(Simulation):
    """The simulation of chapter 5."""

    title = "__call__ vs .forward() Execution"

    def page(self, hooks: bool = True) -> Page:
        """Record the ways of calling, with or without hooks on the layer."""
        ways = WAYS if hooks else ("layer(x), no hooks", "layer.forward(x), no hooks")
        return Page({way: record(way) for way in ways})

    def controls(self) -> dict[str, Any]:
        """Whether hooks are registered."""
        return {"hooks": switch("register a forward pre-hook and a forward hook", True)}
