"""A class on one machine: nbgrader's Assignment List in JupyterLab lists, fetches and submits a chapter."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.authoring.build import clean_copy
from tests.grading.answers import SUBMISSIONS
from tests.grading.classroom import CHAPTER, run
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium, picture

pytestmark = [pytest.mark.browser, needs_chromium]
CONFIG = """
c = get_config()
c.Exchange.root = {exchange!r}
c.CourseDirectory.course_id = "deep_framework_mechanics"
"""


def _instructor(root: Path, folder: Path, config: str) -> Path:
    folder.mkdir()
    clean_copy(root, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(config)
    done = run(folder, "nbgrader", "release_assignment", CHAPTER)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _answer(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        if source := SUBMISSIONS["ada_all_right"].get(cell.metadata.get("nbgrader", {}).get("grade_id")):
            cell.source = source
    nbformat.write(content, notebook)


def test_a_chapter_is_fetched_and_submitted_through_the_panel(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    config = CONFIG.format(exchange=str(exchange))
    course = _instructor(root, tmp_path / "course", config)
    home = tmp_path / "student"
    (home / ".config").mkdir(parents=True)
    (home / ".config" / "nbgrader_config.py").write_text(config, encoding="utf-8")
    with jupyterlab(home) as address, chromium() as page:
        page.goto(f"{address}/lab?reset")
        # What opens before the launcher does is closed by it.
        expect(page.locator(".jp-Launcher")).to_be_visible()
        page.get_by_role("menuitem", name="Nbgrader", exact=True).click()
        page.get_by_text("Assignment List", exact=True).click()
        released, fetched, submitted = (
            page.locator(f"#{name}_assignments_list") for name in ("released", "fetched", "submitted")
        )
        expect(released).to_contain_text(CHAPTER)
        picture(page, "list-1-released")
        released.get_by_role("button", name="Fetch").click()
        expect(fetched).to_contain_text(CHAPTER)
        fetched.get_by_text(CHAPTER, exact=True).first.click()
        expect(fetched.get_by_role("button", name="Validate")).to_be_visible()
        notebook = home / CHAPTER / f"{CHAPTER}.ipynb"
        _answer(notebook)
        picture(page, "list-2-fetched")
        fetched.get_by_role("button", name="Submit").click()
        expect(submitted).to_contain_text(CHAPTER)
        picture(page, "list-3-submitted")
    done = run(course, "nbgrader", "collect", CHAPTER)
    assert done.returncode == 0, done.stdout + done.stderr
    (collected,) = course.glob(f"submitted/*/{CHAPTER}/{CHAPTER}.ipynb")
    assert collected.read_bytes() == notebook.read_bytes()
