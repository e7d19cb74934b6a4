"""The live half: controls that record again with real torch, and refresh the figure that is already on the page."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulations.player import Page


class Simulation:
    """What all ten have in common. A subclass says its ``title``, records a ``page`` and lists its ``controls``.

    ``page(**settings)`` returns a Page; it is called with no settings for the recorded half, and with the controls'
    values after each change. ``plot(page, **settings)`` may return a PNG and its alternative text.
    """

    title = ""

    def page(self, **settings: Any) -> Page:
        """Record real torch under these settings."""
        raise NotImplementedError

    def controls(self) -> dict[str, Any]:
        """Return name of a setting -> control, built by ``choice``, ``amount`` or ``switch``."""
        return {}

    def plot(self, page: Page, **settings: Any) -> tuple[bytes, str] | None:
        """Return a PNG and what it shows in words, or None."""
        return None

    def __repr__(self) -> str:
        return self.title

    def _ipython_display_(self) -> None:
        from IPython.display import display

        page = self.page()
        handle = display(_bundle(page), raw=True, display_id=True)
        live = Live(self, page, handle) if _widgets_wanted() else None
        if live is not None and live.box is not None:
            view = {"version_major": 2, "version_minor": 0, "model_id": live.box.model_id}
            # An output of its own: beside text/html in one bundle, a dead widget would hide the figure.
            display({"application/vnd.jupyter.widget-view+json": view}, raw=True)
        self._live = live


def _bundle(page: Page) -> dict[str, str]:
    return {"text/plain": repr(page), "text/html": page._repr_html_()}


def _widgets_wanted() -> bool:
    # While a class is graded nobody moves a control; nbgrader says so in this variable.
    return os.environ.get("NBGRADER_EXECUTION") != "autograde"


class Live:
    """The controls of one displayed simulation, and what happens when one of them changes."""

    def __init__(self, simulation: Simulation, page: Page, handle: Any) -> None:
        self.simulation, self.handle = simulation, handle
        self.box: Any = None
        with contextlib.suppress(ImportError):
            import ipywidgets

            self._build(ipywidgets, page)

    def _build(self, ipywidgets: Any, page: Page) -> None:
        self.settings = self.simulation.controls()
        self.said = ipywidgets.HTML()
        self.picture = ipywidgets.HTML()
        if not self.settings:
            return
        for control in self.settings.values():
            control.observe(self._changed, "value")
        rows = ipywidgets.HBox(list(self.settings.values()), layout=ipywidgets.Layout(flex_flow="row wrap"))
        heading = ipywidgets.HTML("<b>Record it again with</b>")
        self._draw(page, self._values())
        self.box = ipywidgets.VBox([heading, rows, self.said, self.picture])

    def _values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.settings.items()}

    def _changed(self, change: Mapping[str, Any]) -> None:
        values = self._values()
        try:
            page = self.simulation.page(**values)
        except Exception as error:
            # Settings can exclude one another; the last picture stays, and the reason stands below the controls.
            self.said.value = _sentence(f"{type(error).__name__}: {error}")
            return
        self.said.value = ""
        self.handle.update(_bundle(page), raw=True)
        self._draw(page, values)

    def _draw(self, page: Page, values: Mapping[str, Any]) -> None:
        if drawn := self.simulation.plot(page, **values):
            import base64
            import html

            data, words = drawn
            source = base64.b64encode(data).decode()
            style = "max-width:100%;background:#fff;border-radius:8px;padding:4px"
            picture = f'<img alt="{html.escape(words)}" style="{style}" src="data:image/png;base64,{source}">'
            self.picture.value = picture


def _sentence(text: str) -> str:
    import html

    return f'<div role="status">{html.escape(text[:300])}</div>'


def choice(label: str, options: Sequence[tuple[str, Any]], value: Any) -> Any:
    """Return a dropdown with a name for screen readers."""
    import ipywidgets

    return ipywidgets.Dropdown(options=list(options), value=value, description=label, **_wide(label))


def amount(label: str, low: float, high: float, step: float, value: float) -> Any:
    """Return a field for a number between two bounds, whole numbers for a whole step.

    A field and no slider: the handle of an ipywidgets slider has no name that a screen reader could say.
    """
    import ipywidgets

    kind = ipywidgets.BoundedIntText if isinstance(step, int) else ipywidgets.BoundedFloatText
    return kind(value=value, min=low, max=high, step=step, description=label, continuous_update=False, **_wide(label))


def switch(label: str, value: bool) -> Any:
    """Return a checkbox."""
    import ipywidgets

    return ipywidgets.Checkbox(value=value, description=label, indent=False)


def _wide(label: str) -> dict[str, Any]:
    import ipywidgets

    return {
        "style": {"description_width": "initial"},
        "layout": ipywidgets.Layout(width="auto", margin="2px 18px 2px 0"),
        "tooltip": label,
    }


def figure_png(draw: Callable[[Any], None], width: float = 7.6, height: float = 2.5) -> bytes:
    """Return a PNG of a matplotlib figure that ``draw`` fills; pyplot and its global state are not used.

    Width and height are in inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
