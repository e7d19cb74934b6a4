"""The Life of a Module: built, registered, trained, switched, saved, loaded and exported, its tensors in view."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, choice, figure_png
from simulations.player import Page
from simulations.preserve import one_thread
from simulations.scan import add_nodes, scan
from simulations.trace import Trace, number, rounded, snapped


class Living(nn.Module):
    """A small classifier with everything in it: parameters, buffers, a container, two modes."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map points of shape (n, 2) to two scores each."""
        return self.head(self.body(x))


def rings(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``count`` points (count, 2) in and around a circle, and which of the two they are."""
    angle, label = 6.2832 * torch.rand(count), torch.arange(count) % 2
    radius = 0.6 + 1.0 * label + 0.15 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label


def record(steps: int = 12, dropout: float = 0.2, optimizer: str = "Adam") -> Trace:
    """Live one life with real torch; the seed is fixed."""
    with torch.random.fork_rng([]), one_thread():
        torch.manual_seed(4)
        return _live(Living(dropout), steps, dropout, optimizer)


def _live(model: Living, steps: int, dropout: float, optimizer: str) -> Trace:
    entries = scan(model)
    tensors = {e.path: e.value for e in entries if isinstance(e.value, torch.Tensor)}
    trace = Trace(
        "life_of_a_module",
        "The Life of a Module",
        "Everything this course took apart, once in order: registration makes it findable, calls move its buffers, the "
        "optimizer its parameters, and state_dict carries it into the next process.",
        facts=[
            {"id": "mode", "label": "mode"},
            {"id": "loss", "label": "loss"},
            {"id": "accuracy", "label": "right on new points"},
        ],
        pace=700,
    )
    add_nodes(trace, entries)
    counts = sum(p.numel() for p in model.parameters()), sum(1 for _ in model.buffers())
    trace.event("build", f"__init__ ends: {counts[0]} parameters and {counts[1]} buffers are registered.", "model",
                "registered", tag="build", facts={"mode": "train", "accuracy": _accuracy(model)})  # fmt: skip
    x, label = rings(128)
    kind = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}[optimizer]
    update = kind(model.parameters(), lr=0.1 if optimizer == "Adam" else 0.5)
    said = f"{optimizer}(model.parameters()) holds the same {counts[0]} numbers: not copies."
    trace.event("optimizer", said, "model", "parameter", tag="optimizer")
    losses = [_step(trace, model, tensors, update, x, label, step) for step in range(1, steps + 1)]
    trace.curves["loss"] = losses
    model.eval()
    said = "model.eval(): one flag on every module. Dropout passes values through, BatchNorm stops learning."
    trace.event("mode", said, "model", "plain", tag="eval()", facts={"mode": "eval", "accuracy": _accuracy(model)},
                set={path: {"moved": None, "gradient": None} for path in tensors})  # fmt: skip
    _save_and_load(trace, model, dropout, tensors)
    _export(trace, model)
    chart = {"title": "Loss", "series": [{"label": "training loss", "paint": "good", "points": losses}], "include": [0]}
    trace.opens = -1
    trace.views = [
        {"kind": "tree", "place": "left", "title": "What it is made of", "tallest": 345},
        {"kind": "series", "place": "right", "charts": [{**chart, "axis": "recorded steps →"}]},
        {"kind": "detail", "place": "right"},
    ]
    return trace


def _accuracy(model: nn.Module) -> str:
    mode = model.training
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(99)
        x, label = rings(200)
        right = (model.eval()(x).argmax(1) == label).float().mean().item()
    model.train(mode)
    return f"{right:.0%}"


def _step(
    trace: Trace, model: nn.Module, tensors: dict, update: Any, x: torch.Tensor, label: torch.Tensor, step: int
) -> list[Any]:
    before = {path: tensor.detach().clone() for path, tensor in tensors.items()}
    loss = nn.functional.cross_entropy(model(x), label)
    shown = number(loss.item())
    said = f"Step {step}: forward in training mode. Loss {shown}; the buffers move."
    index = trace.event("forward", said, "model.body.1", "buffer", tag="forward", facts={"loss": shown},
                        set=_moved(tensors, before, "buffer", "by forward"))  # fmt: skip
    update.zero_grad()
    loss.backward()
    norms = snapped({path: float(t.grad.norm()) for path, t in tensors.items() if t.grad is not None})
    shown = {path: {"gradient": ["backward", f"grad {number(norm)}"]} for path, norm in norms.items()}
    said = f"Step {step}: backward fills {len(norms)} gradients."
    trace.event("backward", said, "model", "backward", tag="backward", set=shown)
    middle = {path: tensor.detach().clone() for path, tensor in tensors.items()}
    update.step()
    moved = _moved(tensors, middle, "parameter", "by step()")
    said, facts = f"Step {step}: optimizer.step() moves the parameters.", {"accuracy": _accuracy(model)}
    trace.event("update", said, "model", "parameter", tag="step()", facts=facts, set=moved)
    return [index, rounded(loss.item())]


def _moved(tensors: dict, before: dict, paint: str, by: str) -> dict[str, Any]:
    moved = {}
    for path, tensor in tensors.items():
        distance = float((tensor.detach().float() - before[path].float()).norm())
        moved[path] = {"moved": [paint, f"moved {by}"] if distance else None}
    return moved


def _save_and_load(trace: Trace, model: nn.Module, dropout: float, tensors: dict) -> None:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    trace.event("save", f"torch.save(model.state_dict()): {len(model.state_dict())} named tensors, no code.", "model",
                "good", tag="save", set={path: {"saved": ["good", "saved"]} for path in tensors})  # fmt: skip
    file.seek(0)
    other = Living(dropout)
    told = other.load_state_dict(torch.load(file, weights_only=True))
    other.eval()
    x, _ = rings(50)
    same = torch.equal(other(x), model(x))
    trace.event("load", f"A new model loads it: {told}. Its outputs are {'bit-equal' if same else 'different'}.",
                "model", "good" if same else "orphan", tag="load",
                set={path: {"saved": ["good", "loaded"]} for path in tensors})  # fmt: skip


def _export(trace: Trace, model: nn.Module) -> None:
    x, _ = rings(5)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    nodes = [node for node in exported.graph.nodes if node.op == "call_function"]
    more, _ = rings(33)
    close = torch.allclose(exported.module()(more), model(more))
    trace.event("export", f"torch.export keeps {len(nodes)} operators and no Python. For 33 rows it "
                f"{'answers like the model' if close else 'differs'}.", "model", "good" if close else "orphan",
                tag="export")  # fmt: skip


class LifeOfAModule(Simulation):
    """The simulation of chapter 9."""

    title = "The Life of a Module"

    def page(self, steps: int = 12, dropout: float = 0.2, optimizer: str = "Adam") -> Page:
        """Record one life."""
        return Page({optimizer: record(steps, dropout, optimizer)})

    def controls(self) -> dict[str, Any]:
        """Training steps, dropout p, optimizer."""
        return {
            "steps": amount("training steps", 1, 40, 1, 12),
            "dropout": amount("dropout p", 0.0, 0.8, 0.1, 0.2),
            "optimizer": choice("optimizer", [("Adam", "Adam"), ("SGD", "SGD")], "Adam"),
        }

    def plot(self, page: Page, **settings: Any) -> tuple[bytes, str]:
        """Draw the loss curve."""
        (trace,) = page.variants.values()
        values = [value for _, value in trace.curves["loss"]]

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            axes.plot(range(1, len(values) + 1), values, "o-", color="#1b6e3a")
            axes.set_xlabel("training step")
            axes.set_ylabel("loss")

        return figure_png(draw), f"The loss falls from {values[0]:.3g} to {values[-1]:.3g}"
