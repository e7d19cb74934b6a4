"""Remake the pictures of the README from real recordings. Needs Chromium: python tools/remake_pictures.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import simulations

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
PICTURES = {
    "registration_problem": ("RegistrationProblem", "light"),
    "batchnorm_internals": ("BatchNormInternals", "dark"),
}
BACKGROUNDS = {"light": "#ffffff", "dark": "#111111"}


def main() -> None:
    """Open each simulation where it opens for a reader, and photograph the figure alone."""
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
        browser.close()


if __name__ == "__main__":
    main()
