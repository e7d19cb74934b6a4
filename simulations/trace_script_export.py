"""Trace vs Script: Control Flow, and torch.export: one function with an if, carried out of Python in four ways."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from simulations.call_or_forward import source_of, watch_lines
from simulations.live import Simulation, amount, figure_png
from simulations.player import Page
from simulations.trace import Trace, number

INPUTS = (2.0, 0.5, -1.0, -3.0)
COLUMNS = ("Python", "jit.trace", "jit.script", "torch.export")


class Gate(nn.Module):
    """Doubles what lies above a threshold and negates the rest."""

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > self.threshold:
            return x * 2
        return -x


class ConditionalGate(Gate):
    """The same decision as an operator that a graph can hold: torch.cond."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a tensor to one of its shape."""
        return torch.cond(x.sum() > self.threshold, lambda one: one * 2, lambda one: -one, (x,))


def _carried(example: float, threshold: float) -> tuple[dict[str, Callable | str], dict[str, list[str]]]:
    """Return what each way gives (something to call, or why there is none), and the graphs as text."""
    x = torch.tensor([example])
    ways: dict[str, Callable | str] = {"Python": Gate(threshold)}
    texts: dict[str, list[str]] = {}
    with warnings.catch_warnings():
        # The deprecation of TorchScript and the tracer's own warning are the chapter's text, not this figure's.
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Gate(threshold), x)
        scripted = torch.jit.script(Gate(threshold))
    ways["jit.trace"], ways["jit.script"] = traced, scripted
    texts["jit.trace"] = traced.code.rstrip().splitlines()
    texts["jit.script"] = scripted.code.rstrip().splitlines()
    try:
        with _quietly():
            ways["torch.export"] = torch.export.export(Gate(threshold), (x,)).module()
    except Exception as error:
        ways["torch.export"] = type(error).__name__
    exported = torch.export.export(ConditionalGate(threshold), (x,))
    ways["with torch.cond"] = exported.module()
    texts["torch.export"] = _graph_lines(exported)
    return ways, texts


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep torch's own log of a refused export away: the figure says what was refused."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _graph_lines(exported: Any) -> list[str]:
    """Return the statements of an exported program, without the comments that hold file names."""
    code = exported.graph_module.code.strip().splitlines()
    return [re.sub(r";  [^;]*= None$", "", line.split("  #")[0].rstrip()) for line in code if line.strip()]


def record(example: float = 2.0, threshold: float = 0.0) -> Trace:
    """Trace, script and export a real module with ``example``; then give all of them the same four inputs."""
    ways, texts = _carried(example, threshold)
    columns = [*COLUMNS, "export with torch.cond"]
    trace = Trace(
        "trace_script_export",
        "Trace vs Script: Control Flow",
        "Tracing keeps the branch that one example took. Scripting keeps the if. torch.export refuses the if, and "
        "keeps it when it is written as torch.cond.",
        facts=[{"id": "agree", "label": "answers like Python"}, {"id": "differ", "label": "answers unlike Python"}],
        pace=1100,
        even=True,
    )
    trace.sources = [source_of("forward", Gate.forward)]
    for row in range(len(INPUTS)):
        for column in range(len(columns)):
            trace.node(f"cell:{row}:{column}", columns[column], "cell")
    trace.event("start", f"forward holds an if. The example input for the tracer is [{example:g}].", tag="forward",
                facts={"agree": 0, "differ": 0})  # fmt: skip
    executed = watch_lines(lambda: Gate(threshold)(torch.tensor([example])), {"forward": Gate.forward})
    run = [[0, line] for _, line in executed]
    last = trace.sources[0]["lines"][executed[-1][1]].strip()
    trace.event("trace", f"jit.trace runs forward once with [{example:g}] and notes the operators: only `{last}` was "
                "reached, so only that is in the graph.", tag="jit.trace", tone="forward", run=run,
                missed=_not_run(run, trace.sources[0]["lines"]))  # fmt: skip
    whole = [[0, index] for index in range(1, len(trace.sources[0]["lines"]))]
    trace.event("script", "jit.script compiles the source, with both branches. (TorchScript is deprecated.)",
                tag="jit.script", tone="registered", run=whole)  # fmt: skip
    refused = ways["torch.export"] if isinstance(ways["torch.export"], str) else None
    trace.event("export", f"torch.export {'refuses this forward: ' + refused if refused else 'takes it'}. "
                "The same decision written as torch.cond is exported.", tag="torch.export",
                tone="orphan" if refused else "good")  # fmt: skip
    _compare(trace, ways, columns, threshold)
    for name, lines in texts.items():
        trace.sources.append({"title": name, "lines": lines, "numbered": False})
    places = ["left", "left", "right"]
    trace.opens = -1
    trace.views = [
        {"kind": "grid", "above": True, "columns": columns, "rows": [f"x = [{value:g}]" for value in INPUTS]},
        {"kind": "code", "place": "left", "source": 0, "title": "the forward that is carried away"},
    ]
    titles = ("what jit.trace kept", "what jit.script kept", "what torch.export kept (with torch.cond)")
    for index, (title, place) in enumerate(zip(titles, places, strict=True), start=1):
        chosen = "right" if index > 1 else place
        trace.views.append({"kind": "code", "place": chosen, "source": index, "title": title, "tallest": 130})
    return trace


def _not_run(run: list[list[int]], lines: list[str]) -> list[list[int]]:
    ran = {line for _, line in run}
    return [[0, index] for index in range(1, len(lines)) if index not in ran and lines[index].strip()]


def _compare(trace: Trace, ways: dict[str, Any], columns: list[str], threshold: float) -> None:
    agree = differ = 0
    for row, value in enumerate(INPUTS):
        x = torch.tensor([value])
        right = ways["Python"](x)
        told = {}
        for column, name in enumerate(columns):
            way = ways["with torch.cond"] if column == len(columns) - 1 else ways[name]
            if isinstance(way, str):
                told[f"cell:{row}:{column}"] = {"told": ["plain", "not exported"]}
                continue
            answer = way(x)
            same = torch.equal(answer, right)
            agree, differ = agree + same, differ + (not same)
            sign = "✓" if same else "✗"
            told[f"cell:{row}:{column}"] = {"told": ["good" if same else "orphan", f"{sign} {number(answer.item())}"]}
        branch = "x * 2" if value > threshold else "-x"
        trace.event("call", f"Input [{value:g}]: Python takes the branch {branch} and answers {number(right.item())}.",
                    tag="called", row=row, set=told, facts={"agree": agree, "differ": differ})  # fmt: skip


class TraceScriptExport(Simulation):
    """The simulation of chapter 8."""

    title = "Trace vs Script: Control Flow"

    def page(self, example: float = 2.0, threshold: float = 0.0) -> Page:
        """Record with this example input and threshold, and with an example on the other side."""
        examples = list(dict.fromkeys([example, -3.0 if example > threshold else 2.0]))
        return Page({f"traced with [{one:g}]": record(one, threshold) for one in examples})

    def controls(self) -> dict[str, Any]:
        """The tracer's example input and the threshold of the if."""
        return {
            "example": amount("example input", -4.0, 4.0, 0.5, 2.0),
            "threshold": amount("threshold", -2.0, 2.0, 0.5, 0.0),
        }

    def plot(self, page: Page, example: float = 2.0, threshold: float = 0.0) -> tuple[bytes, str]:
        """Draw what Python and the traced module answer for inputs from -4 to 4."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(Gate(threshold), torch.tensor([example]))
        inputs = torch.linspace(-4, 4, 81)
        eager = [Gate(threshold)(x.reshape(1)).item() for x in inputs]
        kept = [traced(x.reshape(1)).item() for x in inputs]
        wrong = sum(one != other for one, other in zip(eager, kept, strict=True))

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            axes.plot(inputs, eager, "-", linewidth=3, label="Python", color="#0b6e63")
            axes.plot(inputs, kept, "--", label="jit.trace", color="#b3261e")
            axes.axvline(example, color="#59636e", linestyle=":", label="example input")
            axes.set_xlabel("input")
            axes.legend(frameon=False)

        return figure_png(draw), f"The traced module answers wrongly for {wrong} of {len(eager)} inputs"
