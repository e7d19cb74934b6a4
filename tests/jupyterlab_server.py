"""A JupyterLab of the tests' own, on loopback, and the browser that drives it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import end

CHROMIUM = Path("/usr/bin/chromium")
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Every cell stays in the page, so that a test can find it without scrolling.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}
THEMES = "@jupyterlab/apputils-extension/themes"
# A folder to look at: JOURNEY_PICTURES=/some/folder make test PYTEST_ARGS='tests/journey'
PICTURES = os.environ.get("JOURNEY_PICTURES")
needs_chromium = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no Chromium at {CHROMIUM}")


@contextmanager
def jupyterlab(folder: Path, theme: str = "JupyterLab Light") -> Iterator[str]:
    """Serve ``folder`` with settings of its own, to this machine only; yields the address."""
    for name, content in {**SETTINGS, THEMES: {"theme": theme}}.items():
        path = folder / ".settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
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
    # formgrader starts nbgrader's tools by name, as an activated environment has them.
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            # nbgrader's formgrader reads the course's nbgrader_config.py from the folder that it is started in.
            cwd=folder,
            env={**os.environ, "PATH": programs, **{name: str(folder / value) for name, value in own.items()}},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for_server(address, server, folder / "server.log")
            yield address
        finally:
            end(server)


def wait_for_server(address: str, server: subprocess.Popen, log: Path) -> None:
    while True:
        try:
            urllib.request.urlopen(f"{address}/api").close()
            return
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None:
                pytest.fail(f"JupyterLab did not start:\n{log.read_text()}")
            time.sleep(0.1)


@contextmanager
def chromium() -> Iterator[Any]:
    """A page of 1280x800 in Debian's Chromium, whose requests and errors are kept in ``page.seen``."""
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=20_000)
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.seen = {"outside": [], "errors": []}
        page.on("request", lambda request: _note_outside(page, request.url))
        page.on("pageerror", lambda error: page.seen["errors"].append(str(error)))
        yield page
        browser.close()


def _note_outside(page: Any, address: str) -> None:
    if not address.startswith(("http://127.0.0.1", "ws://127.0.0.1", "file:", "data:", "blob:", "about:")):
        page.seen["outside"].append(address)


def picture(page: Any, name: str) -> None:
    """Keep a screenshot for whoever asked for pictures; nobody else pays for it."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def stop_kernels(page, address: str) -> None:
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "_xsrf")
    for session in page.request.get(f"{address}/api/sessions").json():
        deleted = page.request.delete(f"{address}/api/sessions/{session['id']}", headers={"X-XSRFToken": token})
        assert deleted.ok
