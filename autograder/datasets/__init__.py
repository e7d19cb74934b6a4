"""The data that travels with the course: small, our own, and loaded without a network."""

from __future__ import annotations

import json
from pathlib import Path

import torch

_FILE = Path(__file__).parent / "digits.json"


def load_digits(part: str = "training") -> tuple[torch.Tensor, torch.Tensor]:
    """Return the course's digits: grey values from 0 to 1 of shape (drawings, 64), and the digits, int64.

    Arguments: ``part`` is ``training`` (1000 drawings) or ``test`` (300).
    Raises ValueError for any other part.
    """
    parts = json.loads(_FILE.read_text(encoding="utf-8"))
    if part not in parts:
        raise ValueError(f"there is no part {part!r}; the parts are {' and '.join(parts)}")
    digits = torch.tensor([digit for digit, _ in parts[part]])
    greys = torch.tensor([[int(grey, 16) for grey in drawing] for _, drawing in parts[part]])
    return greys / 15, digits
