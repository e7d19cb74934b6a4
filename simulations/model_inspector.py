"""The Interactive Model Inspector: what a module holds, and one real forward and backward pass through it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, choice, figure_png
from simulations.player import Page
from simulations.preserve import CannotRecord, preserved, refuse
from simulations.recording import CallRecorder
from simulations.scan import Entry, add_nodes, memory_text, scan
from simulations.trace import Trace

MOST_ROWS = 300
FEWEST_SIBLINGS_FOLDED = 4
LANES = {
    "operator": {"shape": "dot", "paint": "plain", "label": "operator"},
    "loss": {"shape": "diamond", "paint": "orphan", "label": "loss"},
    "gradient": {"shape": "dot", "paint": "backward", "label": "gradient of an output"},
    "parameter gradient": {"shape": "parameter", "paint": "parameter", "label": "gradient of a parameter"},
    "error": {"shape": "diamond", "paint": "orphan", "label": "error"},
}


def show(
    module: nn.Module, *inputs: Any, backward: bool = True, seconds: float = 10.0, name: str = "model", **keywords: Any
) -> Page:
    """Open a module in the inspector: call it once with these inputs, then run backward from the mean of its output.

    The module, its gradients, hooks and buffers, and the random states are left as they were. A forward that breaks
    becomes an event that says where. What cannot be recorded gives a page with the reason. Raises nothing for what the
    module does; ``seconds`` bounds the call.
    """
    if reason := refuse(module):
        return _refusal(reason)
    try:
        with preserved(module):
            return Page({type(module).__name__: _inspect(module, inputs, keywords, backward, seconds, name)})
    except CannotRecord as error:
        return _refusal(str(error))


def _refusal(reason: str) -> Page:
    trace = Trace("model_inspector", "Interactive Model Inspector", "This object could not be opened.")
    trace.event("error", f"{reason[0].upper()}{reason[1:]}.", tag="not opened", tone="orphan")
    return Page({"not opened": trace})


def _inspect(
    module: nn.Module, inputs: Sequence[Any], keywords: Mapping[str, Any], backward: bool, seconds: float, name: str
) -> Trace:
    entries = scan(module, name)
    trace = Trace(
        "model_inspector",
        "Interactive Model Inspector",
        "The tree is what is registered; the flow is what forward really did. Click a row for its details.",
    )
    _facts(trace, module, entries)
    shown, dropped = folded(entries)
    add_nodes(trace, shown, fold_leaves=len(shown) > 14)
    held = [entry for entry in entries if isinstance(entry.value, (nn.Module, torch.Tensor))]
    orphans = [entry for entry in held if not entry.registered]
    said = f"{type(module).__name__} before its first call."
    if orphans:
        said += f" {orphans[0].path} and {len(orphans) - 1} more are not registered."
    if dropped:
        said += f" {dropped} rows of repeated siblings are folded into the first of them."
    trace.event("start", said, name, "orphan" if orphans else "registered", tag="built")
    visible = {entry.path for entry in shown}
    paths = {id(e.value): e.path for e in shown if isinstance(e.value, nn.Module) and e.shared_with is None}
    recorder = CallRecorder(trace, module, paths)
    with torch.enable_grad():
        output = recorder.run(inputs, keywords, seconds)
        if backward and output is not None:
            tensors = [e for e in entries if isinstance(e.value, torch.Tensor) and e.path in visible]
            names = {id(e.value): e.path for e in reversed(tensors)}
            recorder.backward(output, {id(p): names.get(id(p), name) for p in module.parameters()})
    _never_called(trace, paths, recorder, output is not None)
    _views(trace, recorder, backward)
    return trace


def _facts(trace: Trace, module: nn.Module, entries: Sequence[Entry]) -> None:
    parameters = list(module.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    size = sum(tensor.numel() * tensor.element_size() for tensor in (*parameters, *module.buffers()))
    trace.facts = [
        {"id": "parameters", "label": "parameters"},
        {"id": "memory", "label": "parameters and buffers"},
        {"id": "modules", "label": "modules"},
    ]
    values = {"parameters": f"{count:,}", "memory": memory_text(size), "modules": sum(1 for _ in module.modules())}
    trace.first_facts = values


def folded(entries: Sequence[Entry]) -> tuple[list[Entry], int]:
    """Return the entries with repeated siblings folded once there are more than 300, and how many were left out.

    Siblings fold when their names are numbers, they follow one another, and they hold the same types and shapes.
    """
    if len(entries) <= MOST_ROWS:
        return list(entries), 0
    children: dict[str, list[Entry]] = {}
    for entry in entries:
        children.setdefault(entry.parent, []).append(entry)
    left_out: set[str] = set()
    for siblings in children.values():
        _fold_siblings(siblings, children, left_out)
    kept = [e for e in entries if not any(e.path == p or e.path.startswith(f"{p}.") for p in left_out)]
    return kept[:MOST_ROWS], len(entries) - min(len(kept), MOST_ROWS)


def _fold_siblings(siblings: Sequence[Entry], children: Mapping[str, list[Entry]], left_out: set[str]) -> None:
    groups: dict[tuple, list[Entry]] = {}
    for entry in siblings:
        if entry.kind == "module" and re.fullmatch(r"\d+", entry.label):
            groups.setdefault(_form(entry, children), []).append(entry)
    for alike in groups.values():
        if len(alike) >= FEWEST_SIBLINGS_FOLDED:
            alike[0].label = f"{alike[0].label} … {alike[-1].label} (×{len(alike)})"
            left_out.update(entry.path for entry in alike[1:])


def _form(entry: Entry, children: Mapping[str, list[Entry]]) -> tuple:
    shape = tuple(entry.value.shape) if isinstance(entry.value, torch.Tensor) else ()
    return type(entry.value).__name__, shape, tuple(_form(child, children) for child in children.get(entry.path, ()))


def _never_called(trace: Trace, paths: Mapping[int, str], recorder: CallRecorder, finished: bool) -> None:
    idle = [path for path in paths.values() if path not in recorder.calls]
    # A container that is walked over, such as a ModuleList, is not called and not meant to be.
    holders = {node["id"] for node in trace.nodes if node.get("type") in ("ModuleList", "ModuleDict")}
    idle = [path for path in idle if path not in holders]
    if finished and idle:
        trace.event(
            "idle",
            f"{len(idle)} modules are registered and were never called, such as {idle[0]}.",
            idle[0],
            "plain",
            tag="not called",
            set={path: {"idle": ["plain", "never called"]} for path in idle},
        )


def _views(trace: Trace, recorder: CallRecorder, backward: bool) -> None:
    trace.events[0]["facts"] = trace.first_facts
    boxes = recorder.flow.boxes
    legend = [[kind, kind] for kind in ("module", "parameter", "buffer")] + [["orphan-module", "not registered"]]
    trace.views = [
        {"kind": "timeline", "title": "Who calls whom, over time", "lanes": LANES, "tallest": 150},
        {"kind": "tree", "place": "left", "title": "What it holds", "legend": legend, "tallest": 215},
        {"kind": "detail", "place": "right"},
    ]
    if len(boxes) > 1:
        flow = {"kind": "flow", "above": True, "title": "How the data flowed", "boxes": boxes}
        trace.views.insert(0, {**flow, "edges": recorder.flow.edges})
    trace.views[-3]["above"] = True
    trace.pace = 600
    ended = [index for index, event in enumerate(trace.events) if event["kind"] == "exit" and event["level"] == 1]
    trace.opens = ended[-1] if ended else len(trace.events) - 1


class Mlp(nn.Module):
    """784 → 256 → 10: 203,530 parameters, small enough to count by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(784, 256)
        self.activation = nn.ReLU()
        self.head = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, 784) to (n, 10)."""
        return self.head(self.activation(self.hidden(x)))


class Cnn(nn.Module):
    """Two convolutions with BatchNorm, a pooled head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, height, width) to (n, 10)."""
        x = torch.relu(self.norm1(self.conv1(x)))
        return self.head(self.pool(torch.relu(self.conv2(x))).flatten(1))


class Block(nn.Module):
    """A Transformer block with two residual paths."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, length, width) to the same shape."""
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.feed_forward(self.norm2(x))


class Tied(nn.Module):
    """An embedding whose weight is the output layer's weight too: one tensor under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.mix = nn.Linear(16, 16)
        self.out = nn.Linear(16, 100, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, length) token numbers to (n, length, 100)."""
        return self.out(torch.tanh(self.mix(self.embed(x))))


MODELS = {
    "Transformer block": (Block, lambda rows: torch.randn(rows, 8, 64)),
    "MLP": (Mlp, lambda rows: torch.randn(rows, 784)),
    "CNN": (Cnn, lambda rows: torch.randn(rows, 3, 16, 16)),
    "Tied weights": (Tied, lambda rows: torch.randint(0, 100, (rows, 5))),
}


class ModelInspector(Simulation):
    """The simulation of chapter 7."""

    title = "Interactive Model Inspector"

    def page(self, model: str = "Transformer block", rows: int = 2) -> Page:
        """Open the models, the chosen one first."""
        names = sorted(MODELS, key=lambda name: name != model)
        variants = {}
        for name in names:
            with torch.random.fork_rng([]):
                torch.manual_seed(0)
                build, draw = MODELS[name]
                variants[name] = next(iter(show(build(), draw(rows)).variants.values()))
        return Page(variants)

    def controls(self) -> dict[str, Any]:
        """Model and rows in the batch."""
        return {
            "model": choice("model", [(name, name) for name in MODELS], "Transformer block"),
            "rows": amount("rows in the batch", 2, 32, 1, 2),
        }

    def plot(self, page: Page, model: str = "Transformer block", **settings: Any) -> tuple[bytes, str]:
        """Draw the gradient norm of each parameter of the chosen model."""
        trace = page.variants[model]
        norms = {}
        for event in trace.events:
            if event["kind"] == "parameter gradient":
                text = event["set"][event["node"]]["gradient"][1]
                norms[event["node"].removeprefix("model.")] = float(text.removeprefix("grad "))

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            axes.barh(list(norms), list(norms.values()), color="#6b3fb0")
            axes.set_xlabel("norm of the gradient")
            axes.tick_params(labelsize=8)

        largest = max(norms, key=norms.get)
        return figure_png(draw, height=0.9 + 0.2 * len(norms)), f"Gradient norms of {model}: {largest} has the largest"
