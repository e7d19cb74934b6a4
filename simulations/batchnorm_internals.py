"""BatchNorm Internals: a real nn.BatchNorm1d over real optimizer steps, and who moves which of its five tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, choice, figure_png
from simulations.player import Page
from simulations.trace import Trace, number, rounded

NAMES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
KINDS = {"weight": "parameter", "bias": "parameter"}
WORDS = {"parameter": "a Parameter: the optimizer moves it", "buffer": "a buffer: forward moves it"}


def record(momentum: float | None = 0.1, rows: int = 8, mean: float = 3.0, steps: int = 4) -> Trace:
    """Train a real layer of one feature on batches around ``mean``, then call it in eval mode.

    ``rows`` is the batch size. The seed is fixed, so that only the settings change what is seen.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        layer = nn.BatchNorm1d(1, momentum=momentum)
        return _train(layer, rows, mean, steps)


def _train(layer: nn.BatchNorm1d, rows: int, mean: float, steps: int) -> Trace:
    share = "None" if layer.momentum is None else f"{layer.momentum:g}"
    trace = Trace(
        "batchnorm_internals",
        "BatchNorm Internals",
        "Five tensors, two movers: optimizer.step() moves the Parameters, a call in training mode moves the buffers, "
        "and a call in eval mode moves nothing.",
        facts=[
            {"id": "mode", "label": "mode"},
            {"id": "batch_mean", "label": "mean of this batch"},
            {"id": "batch_var", "label": "variance (n − 1)"},
        ],
    )
    for name in NAMES:
        kind = KINDS.get(name, "buffer")
        trace.node(name, name, kind, type=kind, details={"what": WORDS[kind]})
    curves: dict[str, list] = {name: [] for name in (*NAMES, "batch_mean", "batch_var")}
    start = _values(layer)
    trace.event(
        "start",
        f"The layer is built with momentum={share}: it assumes mean 0 and variance 1 until it has seen a batch.",
        tag="build",
        facts={"mode": "train"},
        set={name: {"value": _shown(name, start[name]), "rest": ""} for name in NAMES},
    )
    _follow(curves, trace, start)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.2)
    for step in range(1, steps + 1):
        x = mean + 2.0 * torch.randn(rows, 1)
        loss = (_called(trace, curves, layer, x, f"Step {step}: ") - 2.0).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        _stepped(trace, curves, layer, optimizer, step)
    layer.eval()
    trace.event(
        "mode", "layer.eval() sets one flag. No tensor moves.", tag="eval()", tone="plain", facts={"mode": "eval"},
    )  # fmt: skip
    for _ in range(2):
        _called(trace, curves, layer, mean + 2.0 * torch.randn(rows, 1), "")
    trace.curves = curves
    trace.opens = 2 * min(3, steps) - 1
    trace.views = [
        {"kind": "cards", "nodes": list(NAMES), "above": True},
        {
            "kind": "series",
            "charts": [
                _chart("Mean: each batch, and what the layer remembers", "batch_mean", "running_mean", curves),
                _chart("Variance: each batch, and what the layer remembers", "batch_var", "running_var", curves),
            ],
        },
    ]
    return trace


def _chart(title: str, batch: str, running: str, curves: dict[str, list]) -> dict[str, Any]:
    return {
        "title": title,
        "axis": "recorded steps →",
        "series": [
            {"label": "this batch", "paint": "parameter", "dots": True, "points": curves[batch]},
            {"label": running, "paint": "buffer", "points": curves[running]},
        ],
    }


def _values(layer: nn.Module) -> dict[str, float]:
    return {name: float(value) for name, value in layer.state_dict().items()}


def _shown(name: str, value: float) -> str:
    return f"{value:.0f}" if name == "num_batches_tracked" else f"{value:.4f}"


def _follow(curves: dict[str, list], trace: Trace, values: dict[str, float]) -> None:
    for name, value in values.items():
        curves[name].append([max(len(trace.events) - 1, 0), rounded(value)])


def _changes(before: dict[str, float], after: dict[str, float], mover: str) -> dict[str, dict[str, str]]:
    changed = {}
    for name in NAMES:
        if after[name] != before[name]:
            change = after[name] - before[name]
            shown = f"{change:+.0f}" if name == "num_batches_tracked" else f"{change:+.4f}"
            changed[name] = {"value": _shown(name, after[name]), "note": f"{shown} by {mover}"}
    return changed


def _called(trace: Trace, curves: dict[str, list], layer: nn.Module, x: torch.Tensor, said: str) -> torch.Tensor:
    before = _values(layer)
    output = layer(x)
    after = _values(layer)
    mean, var = x.mean().item(), x.var(unbiased=True).item()
    changed = _changes(before, after, "forward")
    if changed:
        words = (
            f"{said}the batch has mean {mean:.4f}. running_mean goes from {before['running_mean']:.4f} to "
            f"{after['running_mean']:.4f}, running_var from {before['running_var']:.4f} to {after['running_var']:.4f}."
        )
    else:
        words = (
            f"{said}forward in eval mode: the batch has mean {mean:.4f}, the layer uses the remembered "
            f"{after['running_mean']:.4f} and changes nothing. The output's mean is {output.mean().item():.4f}."
        )
    trace.event(
        "enter", words, tag="forward", tone="buffer" if changed else "plain", set=changed,
        facts={"batch_mean": f"{mean:.4f}", "batch_var": f"{var:.4f}"},
    )  # fmt: skip
    _follow(curves, trace, {**after, "batch_mean": mean, "batch_var": var})
    return output


def _stepped(trace: Trace, curves: dict[str, list], layer: nn.Module, optimizer: Any, step: int) -> None:
    before = _values(layer)
    gradients = {name: number(parameter.grad.item()) for name, parameter in layer.named_parameters()}
    optimizer.step()
    after = _values(layer)
    trace.event(
        "update",
        f"Step {step}: optimizer.step() follows the gradients: {gradients['weight']} for weight, {gradients['bias']} "
        "for bias. The buffers have no gradient and stay.",
        tag="step()",
        tone="parameter",
        set=_changes(before, after, "the optimizer"),
    )
    _follow(curves, trace, after)


class BatchNormInternals(Simulation):
    """The simulation of chapter 3."""

    title = "BatchNorm Internals"

    def page(self, momentum: float | None = 0.1, rows: int = 8, mean: float = 3.0, steps: int = 4) -> Page:
        """Record the layer under these settings."""
        return Page({f"momentum={momentum}": record(momentum, rows, mean, steps)})

    def controls(self) -> dict[str, Any]:
        """Momentum, rows in a batch, mean of the data, training steps."""
        options = [("0.1", 0.1), ("0.5", 0.5), ("0.9", 0.9), ("1", 1.0), ("None (plain average)", None)]
        return {
            "momentum": choice("momentum", options, 0.1),
            "rows": amount("rows in a batch", 2, 64, 1, 8),
            "mean": amount("mean of the data", -5.0, 5.0, 0.5, 3.0),
            "steps": amount("training steps", 1, 30, 1, 4),
        }

    def plot(self, page: Page, **settings: Any) -> tuple[bytes, str]:
        """Draw the running statistics beside those of the batches."""
        (trace,) = page.variants.values()
        curves = trace.curves

        def draw(figure: Any) -> None:
            pairs = (("batch_mean", "running_mean"), ("batch_var", "running_var"))
            for axes, (batch, running) in zip(figure.subplots(1, 2), pairs, strict=True):
                axes.plot(*zip(*curves[batch], strict=True), "D", color="#a04600", label=batch.replace("_", " "))
                axes.plot(*zip(*curves[running], strict=True), "-o", color="#1f5fb0", markersize=3, label=running)
                axes.set_xlabel("recorded steps")
                axes.legend(frameon=False)

        last = curves["running_mean"][-1][1], curves["running_var"][-1][1]
        return figure_png(draw), f"Running mean ends at {last[0]:.3g}, running variance at {last[1]:.3g}"
