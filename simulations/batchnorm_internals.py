"""BatchNorm Internals: a real ``nn.BatchNorm1d`` over real optimizer steps, and who moves which of its five tensors."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

ROW = "padding:.15em .7em;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
NAMES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


@dataclass(frozen=True)
class Moment:
    """One recorded moment: what happened, the mode, the batch's statistics, and the five tensors (one channel)."""

    said: str
    mode: str
    batch_mean: float | None
    batch_var: float | None
    values: dict[str, float]


def record(momentum: float | None = 0.1, batch: int = 8, shift: float = 3.0, steps: int = 4) -> list[Moment]:
    """Train a real layer for ``steps`` steps on batches around ``shift``, then run it once in eval mode.

    Returns a moment for the start, two for each step (after forward, after optimizer.step()) and one for eval mode.
    The learner's own random state is left as it was.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        layer = nn.BatchNorm1d(1, momentum=momentum)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.2)
        moments = [_moment("the layer as it is built", layer, None)]
        for step in range(1, steps + 1):
            x = shift + 2.0 * torch.randn(batch, 1)
            loss = (layer(x) - 1.0).pow(2).mean()
            moments.append(_moment(f"step {step}: forward", layer, x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            moments.append(_moment(f"step {step}: optimizer.step()", layer, None))
        layer.eval()
        x = shift + 2.0 * torch.randn(batch, 1)
        layer(x)
        moments.append(_moment("eval(): forward", layer, x))
    return moments


def _moment(said: str, layer: nn.Module, x: torch.Tensor | None) -> Moment:
    mean = None if x is None else x.mean().item()
    var = None if x is None else x.var(unbiased=True).item()
    values = {name: float(value) for name, value in layer.state_dict().items()}
    return Moment(said, "training" if layer.training else "eval", mean, var, values)


class BatchNormInternals:
    """The simulation of chapter 3. Displaying it shows what was recorded, a plot, and the controls."""

    def __init__(self) -> None:
        self.moments = record()

    def __repr__(self) -> str:
        return f"BatchNorm Internals: {len(self.moments)} recorded moments"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/plain": repr(self), "text/html": table(self.moments)}, raw=True)
        controls = self.controls()
        if controls is not None:
            view = {"version_major": 2, "version_minor": 0, "model_id": controls.model_id}
            display({"text/plain": "", "application/vnd.jupyter.widget-view+json": view}, raw=True)

    def controls(self) -> Any:
        """Return the live half: ipywidgets controls that record anew, or None without ipywidgets."""
        try:
            import ipywidgets
        except ImportError:
            return None
        wide = {"style": {"description_width": "9em"}, "layout": ipywidgets.Layout(width="26em")}
        momentum = ipywidgets.Dropdown(
            options=[("0.1", 0.1), ("0.5", 0.5), ("0.9", 0.9), ("None", None)], description="momentum", **wide
        )
        batch = ipywidgets.IntSlider(
            value=8, min=2, max=64, description="rows in a batch", continuous_update=False, **wide
        )
        shift = ipywidgets.FloatSlider(
            value=3.0, min=-5, max=5, step=0.5, description="mean of the data", continuous_update=False, **wide
        )
        steps = ipywidgets.IntSlider(
            value=4, min=1, max=30, description="training steps", continuous_update=False, **wide
        )
        shown = ipywidgets.HTML()
        picture = ipywidgets.Image(format="png")

        def refresh(_: Any = None) -> None:
            moments = record(momentum.value, batch.value, shift.value, steps.value)
            shown.value = table(moments[-7:]) if steps.value > 3 else table(moments)
            picture.value = plot(moments)

        for control in (momentum, batch, shift, steps):
            control.observe(refresh, "value")
        picture.value = plot(self.moments)
        return ipywidgets.VBox(
            [ipywidgets.HTML("<b>Record it again with</b>"), momentum, batch, shift, steps, picture, shown]
        )


def table(moments: list[Moment]) -> str:
    """Return the moments as an HTML table: what changed since the row before is marked in words and by colour."""
    head = "".join(f'<th scope="col" style="{ROW}">{name}</th>' for name in ("", "batch mean / var", *NAMES))
    rows, before = [], None
    for moment in moments:
        batch = "" if moment.batch_mean is None else f"{moment.batch_mean:.3f} / {moment.batch_var:.3f}"
        cells = "".join(_cell(name, moment, before) for name in NAMES)
        said = f"{html.escape(moment.said)} <small>({moment.mode})</small>"
        rows.append(
            f'<tr><th scope="row" style="{ROW};text-align:left">{said}</th><td style="{ROW}">{batch}</td>{cells}</tr>'
        )
        before = moment
    caption = (
        "<caption style='text-align:left;padding:.3em 0'><b>BatchNorm Internals.</b> ● moved by the optimizer, "
        "■ moved by forward. Nothing moves in eval mode.</caption>"
    )
    body = f"{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<table style="border-collapse:collapse">{body}</table>'


def _cell(name: str, moment: Moment, before: Moment | None) -> str:
    value = f"{moment.values[name]:.0f}" if name == "num_batches_tracked" else f"{moment.values[name]:.4f}"
    if before is None or moment.values[name] == before.values[name]:
        return f'<td style="{ROW};opacity:.75">{value}</td>'
    mark, colour = ("●", "#b45309") if name in ("weight", "bias") else ("■", "#0f766e")
    return f'<td style="{ROW};font-weight:600"><span style="color:{colour}">{mark}</span> {value}</td>'


def plot(moments: list[Moment]) -> bytes:
    """Return a PNG of the running statistics beside those of each batch, over the training steps."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps = [moment for moment in moments if moment.batch_mean is not None and moment.mode == "training"]
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name, seen in zip(figure.subplots(1, 2), NAMES[2:4], ("batch_mean", "batch_var"), strict=True):
        numbers = range(1, len(steps) + 1)
        axes.plot(numbers, [getattr(m, seen) for m in steps], "o", color="#b45309", label=seen.replace("_", " "))
        axes.plot(numbers, [m.values[name] for m in steps], "-s", color="#0f766e", label=name)
        axes.set_xlabel("training step")
        axes.legend(frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()
