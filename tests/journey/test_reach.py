"""A chapter in JupyterLab by keyboard alone, for a screen reader, at 200 % zoom, in both themes.

axe looks at what the course shows, outputs and prose, and not at JupyterLab around it: JupyterLab 4.6 itself has
editors without a name, a button without a name and a list without its items, which a course cannot mend.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.lesson import progress
from tests.grading.answers import SUBMISSIONS
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium, picture

pytestmark = [pytest.mark.browser, needs_chromium, pytest.mark.timeout(420)]
CHAPTER = "ch03_buffers_and_state"
OURS = {"include": [[".jp-OutputArea"], [".jp-RenderedMarkdown"]]}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
ACTIVE = """() => {
  const cells = [...document.querySelectorAll('.jp-Notebook-cell')];
  const at = cells.findIndex((cell) => cell.classList.contains('jp-mod-active'));
  return [at, cells.length, (cells[at].querySelector('.cm-content') || cells[at]).innerText];
}"""
# The innermost element with the focus, through every shadow root, by the words that a person would know it by.
FOCUSED = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  const words = at.getAttribute('aria-label') || at.closest('label')?.innerText || at.innerText || '';
  return `${at.tagName} ${at.getAttribute('class') || ''} ${words}`.replace(/\\s+/g, ' ');
}"""
# What sticks out of its output to the right, or is cut, where no scroll bar brings it back. Code keeps its line breaks.
TOO_WIDE = """() => {
  const found = [];
  const look = (root, home) => {
    for (const one of root.querySelectorAll('*')) {
      const place = home || one.closest('.jp-OutputArea-output, .jp-RenderedMarkdown');
      if (one.shadowRoot) look(one.shadowRoot, place);
      const box = one.getBoundingClientRect();
      if (!place || !box.width || one.closest('.sr, pre, code, svg')) continue;
      const scrolls = (node) => node && node !== place && (/auto|scroll/.test(getComputedStyle(node).overflowX) ||
        scrolls(node.parentElement));
      const cut = getComputedStyle(one).overflowX === 'hidden' && one.scrollWidth > one.clientWidth + 1;
      if (cut || (box.right > place.getBoundingClientRect().right + 1 && !scrolls(one.parentElement)))
        found.push(`${one.tagName}.${one.getAttribute('class')}: ${one.textContent.slice(0, 60)}`);
    }
  };
  look(document.querySelector('.jp-Notebook'), null);
  return found;
}"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """The page of a chapter that was read to its end with the keyboard, and what its parts answered on the way."""
    folder = tmp_path_factory.mktemp("reach")
    file = folder / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb"
    shutil.copytree(root / "notebooks" / CHAPTER, file.parent)
    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = SUBMISSIONS["ada_all_right"].get(name, cell.source)
    nbformat.write(notebook, file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root))
        patch.setenv(progress.PROGRESS_VARIABLE, str(folder / "progress.jsonl"))
        with jupyterlab(folder) as address, chromium() as page:
            page.goto(f"{address}/lab/tree/notebooks/{CHAPTER}/{CHAPTER}.ipynb?reset")
            page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
            page.keyboard.press("Control+b")
            yield page, _read_to_the_end(page)


def _read_to_the_end(page: Any) -> dict[str, str]:
    answered: dict[str, str] = {}
    page.keyboard.press("Escape")
    while True:
        at, count, text = page.evaluate(ACTIVE)
        for start, meet in MEETINGS.items():
            if text.startswith(start) and start not in answered:
                page.keyboard.press("Control+Enter")
                answered[start] = meet(page, page.locator(".jp-Notebook-cell").nth(at))
        if at == count - 1:
            break
        page.keyboard.press("Shift+Enter")
        page.wait_for_function(
            f"() => !document.querySelectorAll('.jp-Notebook-cell')[{at}].classList.contains('jp-mod-active')"
        )
    page.locator(".jp-OutputArea", has_text="ch03: all 3 solved").wait_for(timeout=120_000)
    return answered


def _tab_to(page: Any, wanted: str, most: int = 40) -> None:
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        passed.append(page.evaluate(FOCUSED))
        if re.search(wanted, passed[-1]):
            return
    pytest.fail(f"no Tab leads to {wanted!r}; passed: {passed}")


def _answer(page: Any, cell: Any, button: str) -> str:
    cell.locator(".lesson-panel").wait_for(timeout=60_000)
    _tab_to(page, "^INPUT .*A\\.")
    page.keyboard.press("Space")
    _tab_to(page, button)
    page.keyboard.press("Enter")
    return cell.get_by_role("status").first.inner_text()


def _meet_recall(page: Any, cell: Any) -> str:
    return _answer(page, cell, "Answer question 1")


def _meet_prediction(page: Any, cell: Any) -> str:
    kept = _answer(page, cell, "Keep my prediction")
    page.keyboard.press("Enter")  # The focus has moved on to the button that compares.
    cell.get_by_text("What happens:").or_(cell.get_by_text("As you predicted:")).wait_for()
    return kept


def _meet_quiz(page: Any, cell: Any) -> str:
    return _answer(page, cell, "Answer")


def _meet_figure(page: Any, cell: Any) -> str:
    player = cell.locator("[data-host] .player")
    player.wait_for(timeout=60_000)
    _tab_to(page, "^DIV player")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    second = player.locator(".said").inner_text()
    _tab_to(page, "One step on")
    page.keyboard.press("Enter")
    assert player.locator(".said").inner_text() != second
    cell.locator("select").first.wait_for(timeout=60_000)
    _tab_to(page, "^SELECT")
    page.keyboard.press("ArrowDown")
    return player.locator(".count").inner_text()


def _meet_hints(page: Any, cell: Any) -> str:
    cell.locator(".jp-OutputArea", has_text="public checks").wait_for(timeout=120_000)
    _tab_to(page, "^SUMMARY .*First hint")
    page.keyboard.press("Enter")
    first = page.locator("details[open]").last
    _tab_to(page, "^SUMMARY .*Second hint|^SUMMARY .*template")
    page.keyboard.press("Enter")
    return first.inner_text()


MEETINGS = {
    "recall(": _meet_recall,
    "predict(": _meet_prediction,
    "BatchNormInternals()": _meet_figure,
    "quiz(": _meet_quiz,
    'check("my_dropout"': _meet_hints,
}


def test_the_keyboard_alone_reads_a_whole_chapter(read: tuple[Any, dict[str, str]]) -> None:
    page, answered = read
    assert answered.keys() == MEETINGS.keys()
    assert answered["recall("].startswith("A ") and answered["quiz("].startswith("A ")
    assert answered["predict("] == "Kept: A. Now run the next cell and compare."
    assert answered["BatchNormInternals()"].startswith("3 / ")
    assert "..." in answered['check("my_dropout"'], "the template of the second hint is open"
    assert page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert page.locator(".jp-OutputArea", has_text=re.compile(r"✓ \w+: public checks")).count() == 3
    assert page.seen == {"outside": [], "errors": []}


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_axe_finds_no_serious_fault_in_what_the_course_shows(read: tuple[Any, dict[str, str]], theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page, _ = read
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text(f"JupyterLab {theme}", exact=True).click()
    page.locator(f"body[data-jp-theme-name='JupyterLab {theme}']").wait_for(state="attached")
    page.wait_for_function("() => !document.querySelector('.jp-Spinner')")
    found = axe.Axe().run(page, context=OURS, options=RULES).response["violations"]
    assert [(f["id"], f["nodes"][0]["html"][:160]) for f in found if f["impact"] in ("serious", "critical")] == []
    for name, place in {
        "panel": ".lesson-panel",
        "figure": "[data-host]",
        "card": ".jp-RenderedMarkdown table",
    }.items():
        page.locator(place).nth(1 if name == "panel" else 0).scroll_into_view_if_needed()
        picture(page, f"reach-{theme}-{name}")


def test_nothing_of_ours_is_cut_at_200_percent_zoom(read: tuple[Any, dict[str, str]]) -> None:
    page, _ = read
    # 1280x800 at 200 % has room for as much as 640x400 at 100 %.
    page.set_viewport_size({"width": 640, "height": 400})
    page.wait_for_function("() => document.querySelector('.jp-Notebook').clientWidth < 640")
    for name, place in {
        "panel": ".lesson-panel",
        "figure": "[data-host]",
        "card": ".jp-RenderedMarkdown table",
    }.items():
        page.locator(place).first.scroll_into_view_if_needed()
        picture(page, f"reach-zoom-{name}")
    assert page.evaluate(TOO_WIDE) == []
    page.set_viewport_size({"width": 1280, "height": 800})
