"""The panels in a real JupyterLab: keyboard, announcements, and what is left when the kernel is gone."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.lesson import progress
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium, stop_kernels
from tests.lesson.conftest import SETUP_CELL

pytestmark = [pytest.mark.browser, needs_chromium]


def test_a_reader_answers_with_the_keyboard_and_the_question_outlives_the_kernel(
    tmp_path: Path, kernel_environment: None
) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    cells = [SETUP_CELL, "predict('ch03-expect')", "quiz('ch03-persistent')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    folder = tmp_path / "lab"
    folder.mkdir()
    nbformat.write(notebook, folder / "lesson.ipynb")
    expect = playwright.expect
    with jupyterlab(folder) as address, chromium() as page:
        page.goto(f"{address}/lab/tree/lesson.ipynb?reset")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()

        prediction, question = page.locator(".lesson-panel").nth(0), page.locator(".lesson-panel").nth(1)
        expect(prediction).to_be_visible()
        expect(question).to_be_attached()
        # The live panel stands in for the readable twin above it.
        expect(page.locator(".lesson-static").first).to_be_hidden()

        radios = prediction.get_by_role("radio")
        expect(radios).to_have_count(3)
        expect(radios.nth(1)).to_have_accessible_name(re.compile(r"^B\. tensor\(\[0\.2\]\): momentum is the share"))
        keep = prediction.get_by_role("button", name="Keep my prediction")
        compare = prediction.get_by_role("button", name="I have run it: compare")
        expect(compare).to_be_disabled()
        radios.nth(0).focus()
        for key in ("Tab", "Space", "Tab", "Tab"):
            page.keyboard.press(key)
        expect(radios.nth(1)).to_be_checked()
        expect(keep).to_be_focused()
        page.keyboard.press("Enter")
        expect(prediction.get_by_role("status")).to_have_text("Kept: B. Now run the next cell and compare.")
        expect(compare).to_be_focused()
        page.keyboard.press("Enter")
        expect(prediction.get_by_role("status")).to_contain_text("As you predicted: B.")

        question.get_by_role("radio").nth(0).check()
        question.get_by_role("button", name="Answer").click()
        expect(question.get_by_role("status")).to_contain_text("A does not hold.")
        assert progress.first_answers() == {
            "ch03-expect": {"option": 2, "right": True},
            "ch03-persistent": {"option": 1, "right": False},
        }

        page.keyboard.press("Control+s")
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        # Opened again, JupyterLab starts another kernel, which knows none of these panels.
        stop_kernels(page, address)
        page.goto(f"{address}/lab/tree/lesson.ipynb?reset")
        readable = page.locator(".lesson-static").first
        expect(readable).to_contain_text("what is running_mean?")
        expect(readable).to_contain_text("A. tensor([1.8]): momentum is the share of the old value")
        expect(page.get_by_text("Error displaying widget").first).to_be_attached()
        expect(readable).to_be_visible()
        invitation = "node => getComputedStyle(node, '::after').content"
        error = page.get_by_text("Error displaying widget").first
        assert error.evaluate(invitation) == '"Run this cell to answer here."'
        assert error.evaluate("node => getComputedStyle(node).fontSize") == "0px"
