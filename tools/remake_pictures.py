"""Remake the pictures of the README from real recordings. Needs Chromium: python tools/remake_pictures.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import simulations
from autograder import evaluate
from autograder.present import as_html
from autograder.registry import load_exercise, load_misconceptions

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
PICTURES = {
    "registration_problem": ("RegistrationProblem", "light"),
    "batchnorm_internals": ("BatchNormInternals", "dark"),
}
# What a check says to a student with one of the wrong answers that the check is proven with.
DIAGNOSIS = ("my_batchnorm", "biased_running_variance")
BACKGROUNDS = {"light": "#ffffff", "dark": "#111111"}


def main() -> None:
    """Photograph each simulation as it opens for a reader, and what a check says to a wrong answer."""
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
        page.set_viewport_size({"width": 900, "height": 800})
        page.set_content(f'<div id="paper" style="font: 14px sans-serif; padding: 16px">{_diagnosis(*DIAGNOSIS)}</div>')
        page.locator("#paper").screenshot(path=IMAGES / "diagnosis.png")
        browser.close()


def _diagnosis(name: str, misconception: str) -> str:
    (wrong,) = (entry for entry in load_misconceptions(name) if entry.name == misconception)
    return as_html(load_exercise(name), evaluate(name, *wrong.parts, device="cpu"))


if __name__ == "__main__":
    main()
