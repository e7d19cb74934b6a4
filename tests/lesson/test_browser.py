"""The panels in a real JupyterLab: keyboard, announcements, and what is left when the kernel is gone."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest

from autograder.lesson import progress
from tests.lesson.conftest import SETUP_CELL

CHROMIUM = Path("/usr/bin/chromium")
SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no Chromium at {CHROMIUM}"),
]


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Serve ``folder`` with settings of its own, to this machine only; yields the address."""
    for name, content in SETTINGS.items():
        path = folder / ".settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    own = {
        "JUPYTERLAB_SETTINGS_DIR": ".settings",
        "JUPYTERLAB_WORKSPACES_DIR": ".workspaces",
        "JUPYTER_CONFIG_DIR": ".config",
        "JUPYTER_DATA_DIR": ".data",
        "JUPYTER_RUNTIME_DIR": ".runtime",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
    ]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            env={**os.environ, **{name: str(folder / value) for name, value in own.items()}},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for_server(address, server, folder / "server.log")
            yield address
        finally:
            server.terminate()
            server.wait()


def wait_for_server(address: str, server: subprocess.Popen, log: Path) -> None:
    while True:
        try:
            urllib.request.urlopen(f"{address}/api").close()
            return
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None:
                pytest.fail(f"JupyterLab did not start:\n{log.read_text()}")
            time.sleep(0.1)


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
    expect.set_options(timeout=20_000)
    with jupyterlab(folder) as address, playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
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
        browser.close()


def stop_kernels(page, address: str) -> None:
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "_xsrf")
    for session in page.request.get(f"{address}/api/sessions").json():
        deleted = page.request.delete(f"{address}/api/sessions/{session['id']}", headers={"X-XSRFToken": token})
        assert deleted.ok
