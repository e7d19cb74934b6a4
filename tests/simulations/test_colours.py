"""Colours that mean something: readable in both themes, for every kind of sight, and never alone in what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simulations

STYLE = Path(simulations.__file__).with_name("player") / "style.css"
TONES = ("registered", "orphan", "parameter", "buffer", "forward", "backward", "good", "plain")
# What full loss of one kind of cone leaves of linear red, green and blue: Machado, Oliveira and Fernandes, 2009.
SIGHTS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
READABLE = 4.5  # WCAG 2.2, 1.4.3, for text of ordinary size.


def _palettes() -> dict[str, dict[str, str]]:
    text = STYLE.read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", re.search(pattern, text, re.DOTALL)[1]))
        for pattern in (r"\n\.player \{(.*?)\n\}", r"\n\.player\.dark \{(.*?)\n\}")
    )
    return {"light": light, "dark": dark}


def _seen(colour: str, sight: str) -> tuple[float, ...]:
    """Linear red, green and blue as that sight has them."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return tuple(min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in SIGHTS[sight])


def _contrast(one: str, other: str, sight: str) -> float:
    luminances = sorted(
        (
            sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), _seen(each, sight), strict=True))
            for each in (one, other)
        ),
        reverse=True,
    )
    return (luminances[0] + 0.05) / (luminances[1] + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tone_can_be_read_on_paper_and_on_its_own_fill(theme: str, sight: str) -> None:
    palette = _palettes()[theme]
    assert set(TONES) <= palette.keys()
    for tone in TONES:
        for ground in ("paper", f"{tone}-fill"):
            found = _contrast(palette[tone], palette[ground], sight)
            assert found >= READABLE, f"{tone} on {ground}: {found:.2f}"
    for ground in ("paper", "panel"):
        for ink in ("ink", "soft"):
            assert _contrast(palette[ink], palette[ground], sight) >= READABLE, f"{ink} on {ground}"


def test_an_orphan_is_told_by_line_pattern_and_words_too() -> None:
    text = STYLE.read_text(encoding="utf-8")
    (row,) = re.findall(r"^\.row\.orphan \{(.+)\}$", text, re.MULTILINE)
    assert "dashed" in row and "repeating-linear-gradient" in row
    (missed,) = re.findall(r"^\.code \.statement\.missed \{(.+)\}$", text, re.MULTILINE)
    assert "repeating-linear-gradient" in missed


@pytest.mark.parametrize("name", [name for name in simulations.__all__ if name != "show"])
def test_without_any_colour_each_step_still_says_what_happens(name: str) -> None:
    page = getattr(simulations, name)().page()
    for trace in page.variants.values():
        for event in trace.events:
            assert event.get("say", "").strip(), event
