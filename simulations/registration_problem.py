"""The Registration Problem: a body in a plain list beside one in nn.ModuleList, trained by the same code."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, choice, figure_png
from simulations.player import Page
from simulations.scan import add_nodes, scan
from simulations.trace import Trace, number, rounded, snapped

CONTAINERS = ("plain list", "tuple", "dict", "nn.ModuleList", "nn.ModuleDict")


class Net(nn.Module):
    """A body of ``depth`` linear layers in the container asked for, and a head that is always registered."""

    def __init__(self, container: str, depth: int) -> None:
        super().__init__()
        layers = [nn.Linear(6, 6) for _ in range(depth)]
        named = {f"layer{index}": layer for index, layer in enumerate(layers)}
        made = {
            "plain list": lambda: layers,
            "tuple": lambda: tuple(layers),
            "dict": lambda: named,
            "nn.ModuleList": lambda: nn.ModuleList(layers),
            "nn.ModuleDict": lambda: nn.ModuleDict(named),
        }
        self.layers = made[container]()
        self.head = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a batch of shape (n, 6) to (n, 2)."""
        held = self.layers.values() if hasattr(self.layers, "values") else self.layers
        for layer in held:
            x = torch.tanh(layer(x))
        return self.head(x)


def record(container: str = "plain list", depth: int = 2, steps: int = 3) -> Trace:
    """Build, train and save a small real model; the seed is fixed, so that only the container differs."""
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        model = Net(container, depth)
        x, target = torch.randn(16, 6), torch.randn(16, 2)
        return _train(container, model, x, target, steps)


def _train(container: str, model: nn.Module, x: torch.Tensor, target: torch.Tensor, steps: int) -> Trace:
    entries = [entry for entry in scan(model) if entry.path != "model.training"]
    tensors = {entry.path: entry for entry in entries if isinstance(entry.value, nn.Parameter)}
    seen = {id(parameter) for parameter in model.parameters()}
    sees = sum(parameter.numel() for parameter in model.parameters())
    exists = sum(entry.value.numel() for entry in tensors.values())
    trace = Trace(
        "registration_problem",
        "The Registration Problem",
        "The same layers, the same training loop. What the container is decides what parameters() finds, "
        "and only that is trained, moved and saved.",
        facts=[
            {"id": "sees", "label": "numbers the optimizer sees"},
            {"id": "exists", "label": "numbers that exist"},
            {"id": "loss", "label": "loss"},
        ],
    )
    add_nodes(trace, entries)
    trace.event(
        "start",
        f"The model is built. Its layers are in a {container.removeprefix('plain ')}.",
        "model",
        tag="build",
        facts={"exists": f"{exists:,}"},
    )
    lost = exists - sees
    trace.event(
        "optimizer",
        f"SGD(model.parameters()) receives {sees:,} of {exists:,} numbers."
        + (f" {lost:,} are not found." if lost else " Every one is found."),
        "model",
        "orphan" if lost else "good",
        tag="optimizer",
        facts={"sees": f"{sees:,}"},
        set={
            path: {"seen": ["good", "in parameters()"] if id(e.value) in seen else ["orphan", "not found"]}
            for path, e in tensors.items()
        },
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    first = {path: entry.value.detach().clone() for path, entry in tensors.items()}
    losses: list[list[float]] = []
    for step in range(1, steps + 1):
        loss = nn.functional.mse_loss(model(x), target)
        index = trace.event(
            "loss", f"Step {step}: forward. The loss is {number(loss.item())}.", "model", "forward",
            tag="forward", facts={"loss": number(loss.item())},
        )  # fmt: skip
        losses.append([index, rounded(loss.item())])
        optimizer.zero_grad()
        loss.backward()
        _gradients(trace, step, tensors)
        optimizer.step()
        _moved(trace, step, tensors, first)
    _saved(trace, model, tensors)
    still = nn.functional.mse_loss(model(x), target).item()
    trace.curves["loss"] = losses + [[len(trace.events) - 1, rounded(still)]]
    legend = [
        ["module", "registered module"],
        ["parameter", "registered parameter"],
        ["orphan-parameter", "orphan: not registered"],
    ]
    curve = {"label": container, "paint": "orphan" if lost else "good", "points": trace.curves["loss"]}
    chart = {"title": "Loss", "series": [curve], "include": [0], "axis": "recorded steps →"}
    kinds = ["module", "plain", "parameter"]
    trace.opens = next(index for index, event in enumerate(trace.events) if event["kind"] == "update")
    trace.views = [
        {"kind": "tree", "place": "left", "title": "What the model holds", "legend": legend, "kinds": kinds},
        {"kind": "series", "place": "right", "charts": [chart]},
        {"kind": "detail", "place": "right"},
    ]
    return trace


def _gradients(trace: Trace, step: int, tensors: dict) -> None:
    filled = {path: entry.value.grad for path, entry in tensors.items() if entry.value.grad is not None}
    norms = snapped({path: float(gradient.norm()) for path, gradient in filled.items()})
    trace.event(
        "backward",
        f"Step {step}: backward. Autograd fills the gradient of all {len(norms)} parameters: it needs no registration.",
        "model",
        "backward",
        tag="backward",
        set={path: {"gradient": ["backward", f"grad {number(norm)}"]} for path, norm in norms.items()},
    )


def _moved(trace: Trace, step: int, tensors: dict, first: dict[str, torch.Tensor]) -> None:
    moved = {path: float((entry.value.detach() - first[path]).norm()) for path, entry in tensors.items()}
    still = [path for path, distance in moved.items() if distance == 0]
    trace.event(
        "update",
        f"Step {step}: optimizer.step() moves {len(moved) - len(still)} of {len(moved)} parameters."
        + (f" {still[0]} and {len(still) - 1} more stay where they were born." if still else ""),
        still[0] if still else "model.head.weight",
        "orphan" if still else "good",
        tag="step",
        set={
            path: {
                "moved": ["good", f"moved {number(distance)}"] if distance else ["orphan", "did not move"],
                "seen": None,
                "orphan": None,
            }
            for path, distance in moved.items()
        },
    )


def _saved(trace: Trace, model: nn.Module, tensors: dict) -> None:
    names = {f"model.{name}" for name in model.state_dict()}
    # A module inside an unregistered container keeps its own names; only the root's state_dict is saved.
    trace.event(
        "save",
        f"model.state_dict() holds {len(names)} of {len(tensors)} tensors"
        + ("; a reloaded model would start with a new body." if len(names) < len(tensors) else "."),
        "model",
        "orphan" if len(names) < len(tensors) else "good",
        tag="save",
        set={
            path: {"saved": ["good", "saved"] if path in names else ["orphan", "not saved"], "gradient": None}
            for path in tensors
        },
    )


class RegistrationProblem(Simulation):
    """The simulation of chapter 0."""

    title = "The Registration Problem"

    def page(self, container: str | None = None, depth: int = 2, steps: int = 3) -> Page:
        """Record the chosen container beside nn.ModuleList."""
        chosen = container or "plain list"
        labels = [chosen, "nn.ModuleList" if chosen != "nn.ModuleList" else "plain list"]
        return Page({label: record(label, depth, steps) for label in labels})

    def controls(self) -> dict[str, Any]:
        """Container, number of layers, number of steps."""
        return {
            "container": choice("container", [(name, name) for name in CONTAINERS], "plain list"),
            "depth": amount("layers in the body", 1, 6, 1, 2),
            "steps": amount("training steps", 1, 12, 1, 3),
        }

    def plot(self, page: Page, **settings: Any) -> tuple[bytes, str]:
        """Draw both loss curves."""
        curves = {label: [value for _, value in trace.curves["loss"]] for label, trace in page.variants.items()}

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            for (label, values), style in zip(curves.items(), ("o--", "s-"), strict=True):
                axes.plot(range(len(values)), values, style, label=label)
            axes.set_xlabel("optimizer steps")
            axes.set_ylabel("loss")
            axes.legend(frameon=False)

        ends = ", ".join(f"{label} ends at {values[-1]:.3g}" for label, values in curves.items())
        return figure_png(draw), f"Loss over optimizer steps: {ends}"
