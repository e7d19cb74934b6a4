"""How long a reader waits for a figure: recorded clicks and live controls, beside plain ipywidgets and matplotlib."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.benchmarks import Row, medians

CLICKS, CHANGES = 40, 12
# The same layer, the same steps: what one would write without a player. A click and a control both go to the kernel.
PLAIN = """
import ipywidgets
from simulations import BatchNormInternals
simulation = BatchNormInternals()
momentum = ipywidgets.Dropdown(options=[("0.1", 0.1), ("0.5", 0.5), ("0.9", 0.9)], description="plain momentum")
button, step = ipywidgets.Button(description="plain next"), ipywidgets.Label("0")
picture = ipywidgets.Image(format="png")
pages = {"now": simulation.page()}
def draw():
    picture.value = simulation.plot(pages["now"])[0]
def next_step(_):
    step.value = str(int(step.value) + 1)
    draw()
def change(_):
    pages["now"] = simulation.page(momentum=momentum.value)
    step.value = str(int(step.value) + 1)
    draw()
button.on_click(next_step)
momentum.observe(change, "value")
draw()
ipywidgets.VBox([momentum, button, step, picture])
"""
MEASURE = """
async ([act, seen]) => {
    const look = () => eval(seen);
    const before = look(), start = performance.now();
    eval(act);
    while (look() === before) {
        if (performance.now() - start > 10000) throw new Error("nothing changed after " + act);
        await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return performance.now() - start;
}
"""
PLAYER = "document.querySelector('[data-host]').shadowRoot"


def rows(root: Path) -> Iterator[Row]:
    """Yield rows for clicks and controls in a real JupyterLab (needs Chromium), then for recording and for sizes."""
    sys.path.insert(0, str(root))
    from tests.jupyterlab_server import CHROMIUM

    if CHROMIUM.exists():
        yield from _in_jupyterlab()
    yield from _recording()


def _in_jupyterlab() -> Iterator[Row]:
    import nbformat

    from tests.jupyterlab_server import chromium, jupyterlab

    cells = ["from simulations import BatchNormInternals\nBatchNormInternals()", PLAIN]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nbformat.write(notebook, folder / "figure.ipynb")
        with jupyterlab(folder) as address, chromium() as page:
            page.goto(f"{address}/lab/tree/figure.ipynb?reset")
            page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_text("Run All Cells", exact=True).click()
            page.get_by_role("button", name="plain next").wait_for()
            page.wait_for_timeout(2_000)
            yield from _clicks(page)
            yield from _controls(page)


def _clicks(page: Any) -> Iterator[Row]:
    shown = f"{PLAYER}.querySelector('.count').textContent"
    plain_shown = "[...document.querySelectorAll('.widget-label')].at(-1).textContent"
    ours, peer = [], []
    for turn in range(CLICKS):
        label = "One step on" if turn % 16 < 5 else "One step back" if turn % 16 < 10 else "One step on"
        if page.evaluate(shown).split(" / ")[0] in ("1", "12"):
            label = "One step on" if page.evaluate(shown).startswith("1 ") else "One step back"
        act = f"""{PLAYER}.querySelector('[aria-label="{label}"]').click()"""
        ours.append(page.evaluate(MEASURE, [act, shown]))
        act = "[...document.querySelectorAll('button')].find((one) => one.textContent === 'plain next').click()"
        peer.append(page.evaluate(MEASURE, [act, plain_shown]))
    yield from _percentiles("click in a figure to DOM", ours, peer, "aim: 5 ms at p50")


def _controls(page: Any) -> Iterator[Row]:
    set_value = (
        "(() => {{ const one = document.querySelectorAll('select')[{which}]; one.selectedIndex = {index};"
        " one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    )
    page.evaluate(f"""{PLAYER}.querySelector('[aria-label="Last step"]').click()""")
    # The figure is put into the page anew: between two figures there is none to look at.
    shown = (
        "((document.querySelector('[data-host]') || {}).shadowRoot?.querySelector('.said') || {}).textContent || 'x'"
    )
    page.evaluate(f"window.lastSaid = {shown}")
    settled = f"((text) => text === 'x' ? window.lastSaid : (window.lastSaid = text))({shown})"
    plain_shown = "[...document.querySelectorAll('.widget-label')].at(-1).textContent"
    selects = page.evaluate(
        "[...document.querySelectorAll('.jp-OutputArea select')].map((one) => "
        "[...document.querySelectorAll('select')].indexOf(one))"
    )
    ours, peer = [], []
    for turn in range(CHANGES):
        index = (turn + 1) % 3
        ours.append(page.evaluate(MEASURE, [set_value.format(which=selects[0], index=index), settled]))
        page.wait_for_timeout(150)
        peer.append(page.evaluate(MEASURE, [set_value.format(which=selects[-1], index=index), plain_shown]))
        page.wait_for_timeout(150)
    yield from _percentiles("live control to DOM", ours, peer, "aim: 120 ms at p50")


def _percentiles(what: str, ours: list[float], peer: list[float], aim: str) -> Iterator[Row]:
    name = "plain ipywidgets and matplotlib"
    yield Row(f"{what}, p50", statistics.median(ours), statistics.median(peer), name, aim)
    ninety_fifth = [statistics.quantiles(times, n=20)[-1] for times in (ours, peer)]
    yield Row(f"{what}, p95", *ninety_fifth, name, "")


def _recording() -> Iterator[Row]:
    import simulations

    for name in (one for one in simulations.__all__ if one != "show"):
        simulation = getattr(simulations, name)()
        page = simulation.page()
        size = len(page._repr_html_().encode()) / 1024
        ours, peer = medians(simulation.page, page._repr_html_, turns=5)
        yield Row(f"record {name} ({size:.0f} KB)", ours, peer, "writing it as HTML", "")
