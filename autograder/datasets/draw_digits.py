"""Draws the course's own digits: strokes with a shaky hand, 8 by 8 grey values. Run it to write the file anew.

Nothing here comes from elsewhere: the strokes below are ours, so the file may travel with the course.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

FILE = Path(__file__).parent / "digits.json"
SIDE, DARKEST = 8, 15
TRAINING, TEST = 100, 30  # drawings of each digit

# Each digit is a list of strokes, each stroke a list of points in a square of side 1, y downwards.
STROKES = {
    0: [[(0.5, 0.1), (0.25, 0.3), (0.25, 0.7), (0.5, 0.9), (0.75, 0.7), (0.75, 0.3), (0.5, 0.1)]],
    1: [[(0.3, 0.3), (0.55, 0.1), (0.55, 0.9)]],
    2: [[(0.25, 0.3), (0.45, 0.1), (0.7, 0.25), (0.65, 0.5), (0.25, 0.9), (0.75, 0.9)]],
    3: [[(0.25, 0.15), (0.7, 0.15), (0.45, 0.45), (0.75, 0.65), (0.55, 0.9), (0.25, 0.8)]],
    4: [[(0.65, 0.9), (0.65, 0.1), (0.2, 0.6), (0.8, 0.6)]],
    5: [[(0.75, 0.1), (0.3, 0.1), (0.3, 0.45), (0.65, 0.45), (0.75, 0.7), (0.5, 0.9), (0.25, 0.85)]],
    6: [[(0.65, 0.1), (0.35, 0.4), (0.25, 0.7), (0.5, 0.9), (0.75, 0.7), (0.5, 0.5), (0.3, 0.65)]],
    7: [[(0.2, 0.1), (0.8, 0.1), (0.4, 0.9)]],
    8: [[(0.5, 0.5), (0.3, 0.3), (0.5, 0.1), (0.7, 0.3), (0.3, 0.7), (0.5, 0.9), (0.7, 0.7), (0.5, 0.5)]],
    9: [[(0.7, 0.35), (0.5, 0.5), (0.25, 0.3), (0.5, 0.1), (0.75, 0.3), (0.65, 0.6), (0.4, 0.9)]],
}


def draw(digit: int, dice: random.Random) -> str:
    """Return one drawing as 64 hexadecimal digits, row by row: 0 is paper, f is ink."""
    angle, slant = dice.gauss(0, 0.14), dice.gauss(0, 0.13)
    wide, high = dice.uniform(0.75, 1.1), dice.uniform(0.8, 1.1)
    right, down = dice.gauss(0, 0.06), dice.gauss(0, 0.05)
    pen = dice.uniform(0.05, 0.09)

    def moved(point: tuple[float, float]) -> tuple[float, float]:
        x, y = (point[0] - 0.5 + dice.gauss(0, 0.025)) * wide, (point[1] - 0.5 + dice.gauss(0, 0.025)) * high
        x += slant * y
        return (
            0.5 + right + x * math.cos(angle) - y * math.sin(angle),
            0.5 + down + x * math.sin(angle) + y * math.cos(angle),
        )

    lines = [[moved(point) for point in stroke] for stroke in STROKES[digit]]
    segments = [pair for line in lines for pair in zip(line, line[1:], strict=False)]
    greys = []
    for row in range(SIDE):
        for column in range(SIDE):
            x, y = (column + 0.5) / SIDE, (row + 0.5) / SIDE
            away = min(_distance(x, y, *start, *end) for start, end in segments)
            ink = 1 - max(0.0, away - pen) / 0.09 + dice.gauss(0, 0.10)
            greys.append(max(0, min(DARKEST, round(DARKEST * ink))))
    return "".join(f"{grey:x}" for grey in greys)


def _distance(x: float, y: float, x1: float, y1: float, x2: float, y2: float) -> float:
    length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    along = 0.0 if length == 0 else max(0.0, min(1.0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length))
    return math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1))


def drawings(seed: int = 9) -> dict[str, list[list]]:
    """Return both parts of the data set: lists of [digit, drawing]."""
    dice = random.Random(seed)
    parts = {}
    for part, count in (("training", TRAINING), ("test", TEST)):
        parts[part] = [[digit, draw(digit, dice)] for _ in range(count) for digit in STROKES]
    return parts


if __name__ == "__main__":
    text = json.dumps(drawings(), indent=0)
    FILE.write_text(text.replace("[\n", "[").replace(',\n"', ', "').replace("\n]", "]") + "\n", encoding="utf-8")
