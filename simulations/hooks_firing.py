"""Hooks Firing During Forward and Backward: every kind of hook on every module, in the order of their firing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, choice, figure_png, switch
from simulations.player import Page
from simulations.recording import shapes_text
from simulations.scan import add_nodes, scan
from simulations.trace import Trace, number

KINDS = {
    "forward_pre": ("before forward", "before", "forward", "forward pre-hook"),
    "forward": ("after forward", "after", "forward", "forward hook"),
    "full_backward_pre": ("before backward", "before", "backward", "full backward pre-hook"),
    "full_backward": ("gradients ready", "after", "backward", "full backward hook"),
}


class HookNet(nn.Module):
    """Two linear layers with an activation between them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, 8) to (n, 3)."""
        return self.fc2(self.act(self.fc1(x)))


def record(
    kinds: tuple[str, ...] = tuple(KINDS),
    on_children: bool = True,
    replacing: bool = False,
    input_asks: bool = True,
) -> Trace:
    """Register the kinds of hooks asked for, call the model and run backward; each firing is an event.

    ``on_children`` False leaves hooks on the root only. ``replacing`` lets the forward hook of ``act`` return half of
    its output, which then is what ``fc2`` receives. ``input_asks`` says whether the input requires a gradient: it
    decides whether the root's full backward hook fires last or first.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(2)
        model = HookNet()
        # fork_rng gives back the numbers, and the model is our own: nothing of the learner's is touched.
        return _record(model, kinds, on_children, replacing, torch.randn(4, 8).requires_grad_(input_asks))


def _record(model: nn.Module, kinds: tuple[str, ...], on_children: bool, replacing: bool, x: torch.Tensor) -> Trace:
    trace = Trace(
        "hooks_firing",
        "Hooks Firing During Forward and Backward",
        "Forward: the root opens first and closes last. Backward goes through the layers in reverse, and the root's "
        "own hook fires last if the input asks for a gradient, and first if it does not.",
        facts=[{"id": kind, "label": word} for kind, (word, *_) in KINDS.items() if kind in kinds],
        pace=700,
    )
    counts = dict.fromkeys(kinds, 0)
    owners = [(f"model.{name}" if name else "model", child) for name, child in model.named_modules()]
    hooked = [(path, child) for path, child in owners if on_children or path == "model"]
    for path, child in hooked:
        for kind in kinds:
            getattr(child, f"register_{kind}_hook")(_hook(trace, kind, path, counts, replacing))
    entries = [entry for entry in scan(model) if entry.kind == "module"]
    add_nodes(trace, entries)
    trace.event(
        "start",
        f"{len(kinds) * len(hooked)} hooks are registered, {len(kinds)} on each of {len(hooked)} modules. "
        "Nothing has been called yet.",
        "model",
        tag="registered",
        facts=dict(counts),
    )
    output = _called(trace, model, x)
    loss = output.square().mean()
    trace.event("loss", f"The loss is {number(loss.item())}; loss.backward() begins.", "model", "orphan", tag="loss")
    with warnings.catch_warnings():
        # torch warns that the input of the model asks for no gradient; the figure's caption says what follows from it.
        warnings.simplefilter("ignore")
        loss.backward()
    trace.event("end", f"{sum(counts.values())} hooks have fired, each exactly once.", "model", tag="end")
    _views(trace)
    trace.opens = len(trace.events) - 6
    return trace


def _hook(trace: Trace, kind: str, path: str, counts: dict[str, int], replacing: bool) -> Callable:
    word, shape, tone, name = KINDS[kind]

    def hook(module: nn.Module, first: Any, second: Any = None) -> Any:
        counts[kind] += 1
        result = second / 2 if replacing and kind == "forward" and path == "model.act" else None
        returned = "" if result is None else " It returns half of it."
        trace.event(
            kind,
            f"{path}: the {name} {_seen(kind, first, second)}{returned}",
            path,
            tone,
            tag=word,
            facts={kind: counts[kind]},
            set={path: {kind: [tone, f"{word.split()[0]} #{sum(counts.values())}"]}},
            details={"hook": name, **_arguments(kind, first, second)},
        )
        return result

    hook.__name__ = f"tell_{kind}"
    return hook


def _seen(kind: str, first: Any, second: Any) -> str:
    if kind == "forward_pre":
        return f"sees the inputs: {shapes_text(first)}."
    if kind == "forward":
        return f"sees inputs {shapes_text(first)} and the output {shapes_text(second)}."
    if kind == "full_backward_pre":
        return f"sees the gradient of the output: {shapes_text(first)}."
    return f"sees the gradient of the inputs: {shapes_text(first)}."


def _arguments(kind: str, first: Any, second: Any) -> dict[str, str]:
    names = {
        "forward_pre": ("args", None),
        "forward": ("args", "output"),
        "full_backward_pre": ("grad_output", None),
        "full_backward": ("grad_input", "grad_output"),
    }[kind]
    return {name: shapes_text(value) for name, value in zip(names, (first, second), strict=True) if name}


def _called(trace: Trace, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Call the model with each module's forward shadowed, so that the call itself is seen between its hooks."""
    for path, child in model.named_modules():
        node = f"model.{path}" if path else "model"
        child.forward = _told(trace, node, child.forward)
    try:
        return model(x)
    finally:
        for child in model.modules():
            del child.forward


def _told(trace: Trace, node: str, forward: Callable) -> Callable:
    def told(*inputs: Any) -> Any:
        trace.event("enter", f"{node}.forward begins with {shapes_text(inputs)}.", node, "registered", tag="forward",
                    level=2)  # fmt: skip
        output = forward(*inputs)
        trace.event(
            "exit", f"{node}.forward returns {shapes_text(output)}.", node, "registered", tag="forward", level=2
        )
        return output

    return told


def _views(trace: Trace) -> None:
    lanes = {kind: {"shape": s, "paint": tone, "label": name} for kind, (_, s, tone, name) in KINDS.items()}
    lanes["loss"] = {"shape": "diamond", "paint": "orphan", "label": "loss"}
    trace.views = [
        {"kind": "timeline", "title": "In the order in which torch really calls them", "lanes": lanes, "above": True},
        {"kind": "tree", "place": "left", "title": "Where they fired, numbered in order"},
        {"kind": "detail", "place": "right"},
    ]


class HooksFiring(Simulation):
    """The simulation of chapter 4."""

    title = "Hooks Firing During Forward and Backward"

    def page(self, kinds: str = "all", on_children: bool = True, replacing: bool = False) -> Page:
        """Record with the kinds of hooks asked for."""
        chosen = tuple(kind for kind in KINDS if kinds == "all" or (kinds == "forward") == ("backward" not in kind))
        labels = {"input asks for a gradient": True, "input does not ask": False}
        return Page({label: record(chosen, on_children, replacing, asks) for label, asks in labels.items()})

    def controls(self) -> dict[str, Any]:
        """Kinds of hooks, where they sit, and whether one of them replaces an output."""
        options = [("forward and backward", "all"), ("forward only", "forward"), ("backward only", "backward")]
        return {
            "kinds": choice("hooks", options, "all"),
            "on_children": switch("on the children too", True),
            "replacing": switch("act's forward hook returns half of the output", False),
        }

    def plot(self, page: Page, replacing: bool = False, **settings: Any) -> tuple[bytes, str]:
        """Draw the activations that a forward hook saw in each layer."""
        with torch.random.fork_rng([]):
            torch.manual_seed(2)
            model, seen = HookNet(), {}
            for name, child in model.named_children():
                child.register_forward_hook(lambda m, i, o, name=name: seen.update({name: o.detach().flatten()}))
            model(torch.randn(64, 8))

        def draw(figure: Any) -> None:
            for axes, (name, values) in zip(figure.subplots(1, 3), seen.items(), strict=True):
                axes.hist(values.numpy(), bins=30, color="#8a6100")
                axes.set_title(f"{name}: output", fontsize=9)

        zero = float((seen["act"] == 0).float().mean())
        return figure_png(draw, height=2.0), f"Histograms of three outputs; {zero:.0%} of act's output is exactly 0"
