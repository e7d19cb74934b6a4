"""Remake the pictures of the README from recordings and a check: python tools/remake_pictures.py (needs Chromium)."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import simulations
from autograder import evaluate
from autograder.present import as_html
from autograder.registry import load_exercise, load_misconceptions

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
PICTURES = {
    "registration_problem": ("RegistrationProblem", "light"),
    "batchnorm_internals": ("BatchNormInternals", "dark"),
}
BACKGROUNDS = {"light": "#ffffff", "dark": "#111111"}
DIAGNOSED = ("my_batchnorm", "biased_running_variance")
CHECK_CELL = (
    '<!doctype html><meta charset="utf-8"><title>check</title><style>body { margin: 0; font: 14px/1.5 system-ui, '
    '"DejaVu Sans", sans-serif } #cell { padding: 14px 18px; width: 920px } pre { margin: 0 0 12px; padding: 8px 12px; '
    "background: #f5f5f5; border: 1px solid #ddd; font: 13px monospace } code { background: #eee; padding: 0 .25em }"
    "</style><div id=cell><pre>{call}</pre>{report}</div>"
)


def main() -> None:
    """Open each simulation where it opens for a reader, and a check that failed, and photograph them alone."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as engine, tempfile.TemporaryDirectory() as folder:
        browser = engine.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-background-networking"]
        )
        page = browser.new_page(viewport={"width": 980, "height": 800}, device_scale_factor=1.5)
        for name, (simulation, theme) in PICTURES.items():
            file = getattr(simulations, simulation)().page().save(Path(folder) / f"{name}.html")
            page.goto(file.as_uri())
            page.evaluate(f"document.body.style.background = '{BACKGROUNDS[theme]}'")
            page.wait_for_timeout(300)
            page.locator("[data-host] .player").screenshot(path=IMAGES / f"{name}.png")
        _diagnosis(page, IMAGES / "diagnosis.png")
        browser.close()


def _diagnosis(page: Page, file: Path) -> None:
    name, wrong = DIAGNOSED
    exercise = load_exercise(name)
    (entry,) = [one for one in load_misconceptions(name) if one.name == wrong]
    report = as_html(exercise, evaluate(name, *entry.parts, device="cpu"))
    content = CHECK_CELL.replace("{call}", html.escape(exercise.check_call)).replace("{report}", report)
    page.set_content(content)
    page.locator("#cell").screenshot(path=file)


if __name__ == "__main__":
    main()
