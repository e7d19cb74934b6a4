"""A student in a real JupyterLab: predicts, runs, uses the figure, answers wrongly, corrects, passes, validates."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from autograder.lesson import progress
from autograder.registry import load_misconceptions
from tests.grading.answers import SUBMISSIONS
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium, picture

pytestmark = [pytest.mark.browser, needs_chromium]
CHAPTER = "ch03_buffers_and_state"


def _type(page: Any, cell: Any, text: str) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def _run(page: Any, cell: Any) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


@pytest.mark.timeout(300)
def test_a_wrong_batchnorm_is_explained_corrected_and_passes(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(tmp_path / "progress.jsonl"))
    folder = tmp_path / "course"
    shutil.copytree(root / "notebooks" / CHAPTER, folder / "notebooks" / CHAPTER)
    # The dark theme, unless someone wants to look at the light one.
    theme = os.environ.get("JOURNEY_THEME", "JupyterLab Dark")
    with jupyterlab(folder, theme) as address, chromium() as page:
        page.goto(f"{address}/lab/tree/notebooks/{CHAPTER}/{CHAPTER}.ipynb?reset")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
        page.keyboard.press("Control+b")
        picture(page, "1-opened")
        answer = page.locator(".jp-CodeCell", has_text='raise NotImplementedError("my_batchnorm")').first
        check = page.locator(".jp-CodeCell", has_text='check("my_batchnorm", MyBatchNorm)').first
        answer.locator(".cm-content").click()
        page.keyboard.press("Escape")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Above Selected Cell", exact=True).click()

        figure = page.locator("[data-host] .player")
        expect(figure).to_be_visible(timeout=60_000)
        figure.scroll_into_view_if_needed()
        figure.get_by_role("button", name="One step on").click()
        picture(page, "2-figure")
        prediction = page.locator(".lesson-panel").nth(1)
        prediction.get_by_role("radio").first.check()
        prediction.get_by_role("button", name="Keep my prediction").click()
        expect(prediction.get_by_role("status")).to_contain_text("Kept: A.")
        prediction.scroll_into_view_if_needed()
        picture(page, "3-prediction")

        _run(page, answer)
        _run(page, check)
        output = check.locator(".jp-OutputArea")
        expect(output).to_contain_text("NotImplementedError: my_batchnorm is still to be written")

        wrong = SUBMISSIONS["cleo_biased_running_var"]["my_batchnorm"]
        answer = check.locator("xpath=preceding-sibling::*[contains(@class,'jp-CodeCell')][1]")
        _type(page, answer, wrong)
        _run(page, answer)
        _run(page, check)
        expect(output).to_contain_text("running_var after step 1")
        (entry,) = [one for one in load_misconceptions("my_batchnorm") if one.name == "biased_running_variance"]
        expect(output).to_contain_text(entry.question.split("?")[0])
        expect(output).not_to_contain_text("Traceback")
        check.scroll_into_view_if_needed()
        picture(page, "4-diagnosis")

        _type(page, answer, SUBMISSIONS["ada_all_right"]["my_batchnorm"])
        _run(page, answer)
        _run(page, check)
        expect(output).to_contain_text("✓ my_batchnorm: public checks 31 of 31 agree with torch")
        expect(output).to_contain_text("ch03: 1 of 3 solved, next: my_dropout")
        check.scroll_into_view_if_needed()
        picture(page, "5-passed")

        page.get_by_role("button", name="Validate").click()
        expect(page.get_by_text("Validation Results", exact=False).first).to_be_visible(timeout=90_000)
        # Nothing was saved until now: the button saves before it validates, so what passes is not among them.
        expect(page.locator(".jp-Dialog")).to_contain_text("save_and_resume")
        expect(page.locator(".jp-Dialog")).not_to_contain_text('check("my_batchnorm"')
        picture(page, "6-validated")
        assert page.seen["outside"] == []
