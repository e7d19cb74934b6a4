"""Every simulation in a real browser: it opens, steps, answers clicks and keys, and asks nothing of the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

import simulations
from simulations.player import Page
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium, stop_kernels

pytestmark = [pytest.mark.browser, needs_chromium]
CLASSES = [name for name in simulations.__all__ if name != "show"]
PLAYER = "document.querySelector('[data-host]').shadowRoot.querySelector('.player')"

# What sticks out of the figure or is cut off, where no scroll bar brings it back.
CUT = f"""() => {{
  const player = {PLAYER}, edge = player.getBoundingClientRect().right + 1;
  const scrolls = (node) => node !== player && (/auto|scroll/.test(getComputedStyle(node).overflowX) ||
    scrolls(node.parentElement));
  return [...player.querySelectorAll('*')].filter((one) => !one.closest('.sr, svg') && one.clientWidth &&
    ((getComputedStyle(one).overflowX === 'hidden' && one.scrollWidth > one.clientWidth + 1) ||
     (one.getBoundingClientRect().right > edge && !scrolls(one.parentElement))))
    .map((one) => one.outerHTML.slice(0, 120));
}}"""


@pytest.fixture(scope="module")
def page():
    """One browser for all exported pages."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Name -> exported HTML page, recorded once."""
    folder = tmp_path_factory.mktemp("exported")
    return {name: getattr(simulations, name)().page().save(folder / f"{name}.html") for name in CLASSES}


def _open(page: Any, file: Path) -> Any:
    page.seen["outside"].clear()
    page.seen["errors"].clear()
    page.goto(file.as_uri())
    return page.locator("[data-host] .player")


def _count(player: Any) -> list[int]:
    return [int(part) for part in player.locator(".count").inner_text().split(" / ")]


@pytest.mark.parametrize("name", CLASSES)
def test_an_exported_page_steps_by_key_button_and_slider(page: Any, exported: dict, name: str) -> None:
    player = _open(page, exported[name])
    player.focus()
    page.keyboard.press("Home")
    first, steps = _count(player)
    said = player.locator(".said").inner_text()
    page.keyboard.press("ArrowRight")
    assert _count(player) == [first + 1, steps]
    assert player.locator(".said").inner_text() != said
    player.get_by_role("button", name="One step back").click()
    assert player.locator(".said").inner_text() == said
    slider = player.get_by_role("slider", name="Step")
    slider.fill(str(steps - 1))
    assert _count(player) == [steps, steps]
    assert player.locator(".said").inner_text() in slider.get_attribute("aria-valuetext")
    assert page.seen == {"outside": [], "errors": []}


@pytest.mark.parametrize("name", CLASSES)
def test_every_step_of_every_variant_is_drawn_without_an_error(page: Any, exported: dict, name: str) -> None:
    player = _open(page, exported[name])
    buttons = player.locator(".choices button")
    for index in range(max(buttons.count(), 1)):
        if buttons.count():
            buttons.nth(index).click()
        finer = player.get_by_role("button", name="every detail")
        if finer.count() and finer.get_attribute("aria-pressed") == "false":
            finer.click()
        player.focus()
        page.keyboard.press("Home")
        steps = _count(player)[1]
        for _ in range(steps - 1):
            page.keyboard.press("ArrowRight")
        assert _count(player) == [steps, steps]
    assert page.seen["errors"] == []
    width = page.evaluate(f"{PLAYER}.scrollWidth - {PLAYER}.clientWidth")
    assert width <= 0, "something is wider than the figure"


@pytest.mark.parametrize("name", CLASSES)
def test_nothing_is_cut_where_the_page_is_narrow(page: Any, exported: dict, name: str) -> None:
    # What JupyterLab leaves for an output on a screen of 1280x800 at 200 % zoom.
    page.set_viewport_size({"width": 470, "height": 400})
    _open(page, exported[name])
    found = page.evaluate(CUT)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert found == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", CLASSES)
def test_axe_finds_no_serious_fault(page: Any, exported: dict, name: str, dark: bool) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    player = _open(page, exported[name])
    page.evaluate(f"document.body.style.background = '{'#111111' if dark else '#ffffff'}'; document.body.dataset.x = 1")
    assert ("dark" in player.get_attribute("class").split()) is dark
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    found = axe.Axe().run(page, context="[data-simulation]", options=rules).response["violations"]
    serious = [(f["id"], f["nodes"][0]["html"][:200]) for f in found if f["impact"] in ("serious", "critical")]
    assert serious == []


def test_a_click_on_a_row_shows_its_details(page: Any, exported: dict) -> None:
    player = _open(page, exported["ModelInspector"])
    player.get_by_text("MLP", exact=True).click()
    player.locator(".row", has_text="hidden").first.click()
    assert "784" in player.locator("dl.detail").inner_text()
    assert "Selected: model.hidden" in player.inner_text()


def test_play_runs_to_the_end_and_stops(page: Any, exported: dict) -> None:
    player = _open(page, exported["ParameterOrTensor"])
    player.focus()
    page.keyboard.press("End")
    steps = _count(player)[1]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    player.get_by_role("button", name="Pause").wait_for()
    player.get_by_role("button", name="Play", exact=True).wait_for(timeout=10_000)
    assert _count(player) == [steps, steps]


def test_without_scripts_the_steps_are_a_table(page: Any, exported: dict) -> None:
    context = page.context.browser.new_context(java_script_enabled=False)
    bare = context.new_page()
    bare.goto(exported["HooksFiring"].as_uri())
    bare.locator("summary").first.click()
    assert "hooks are registered" in bare.locator("table").first.inner_text()
    context.close()


def test_in_jupyterlab_a_control_records_again_and_no_shortcut_fires(
    page: Any, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(root))
    from playwright.sync_api import expect

    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("from simulations import BatchNormInternals\nBatchNormInternals()"),
            nbformat.v4.new_code_cell("'the last cell'"),
        ]
    )
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    folder = tmp_path / "lab"
    folder.mkdir()
    nbformat.write(notebook, folder / "figure.ipynb")
    html = simulations.BatchNormInternals().page()._repr_html_()
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    nbformat.write(notebook, folder / "stranger.ipynb")
    page.seen["outside"].clear()
    with jupyterlab(folder) as address:
        page.goto(f"{address}/lab/tree/figure.ipynb?reset")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        player = page.locator("[data-host] .player")
        expect(player).to_be_visible()
        player.focus()
        page.keyboard.press("Home")
        for key in ("ArrowRight", "d", "d", "a", "x", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        assert _count(player)[0] == 3
        expect(page.locator(".jp-CodeCell")).to_have_count(2)
        page.keyboard.press("ArrowLeft")
        before = player.locator(".said").inner_text()
        page.get_by_label("momentum", exact=False).first.select_option("0.9")
        expect(player.locator(".said")).not_to_have_text(before)
        assert _count(player)[0] == 2, "the figure stays at the step that was looked at"
        expect(page.get_by_role("spinbutton", name="rows in a batch")).to_have_count(1)
        expect(page.locator("img[alt^='Running mean ends at']")).to_have_count(1)
        # A restarted kernel and a reopened file leave the recorded half alive.
        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        stop_kernels(page, address)
        page.goto(f"{address}/lab/tree/figure.ipynb?reset")
        player = page.locator("[data-host] .player")
        expect(player).to_be_visible()
        start = _count(player)[0]
        player.get_by_role("button", name="One step back").click()
        assert _count(player)[0] == start - 1
        # A file that somebody else executed is not trusted: no script runs, and the steps are still there to read.
        page.goto(f"{address}/lab/tree/stranger.ipynb?reset")
        page.locator("summary", has_text="12 steps").click()
        expect(page.locator(".jp-OutputArea table")).to_contain_text("The layer is built with momentum=0.1")
        expect(page.locator("[data-host] .player")).to_have_count(0)
        assert page.seen["outside"] == []


def test_two_figures_on_a_page_do_not_meet(page: Any, tmp_path: Path) -> None:
    from simulations.hooks_firing import record

    figure = Page({"a": record()})._repr_html_()
    file = tmp_path / "two.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><title>two</title>{figure}{figure}", encoding="utf-8")
    page.goto(file.as_uri())
    one, other = page.locator("[data-host] .player").all()
    one.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert _count(one)[0] == 2 and _count(other)[0] != 2
    left = page.evaluate("Object.keys(window).filter(name => /^(Player|fold|VIEWS|STYLE|element)$/.test(name))")
    assert left == [], json.dumps(left)
