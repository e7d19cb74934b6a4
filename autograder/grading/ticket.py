"""What goes to a grading run and what comes back from it, as plain values: everything here is cheap to import."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

GRADING_SEED_VARIABLE = "AUTOGRADER_GRADING_SEED"
GRADING_RUN_VARIABLE = "AUTOGRADER_GRADING_RUN"
GRADING_DEVICES_VARIABLE = "AUTOGRADER_GRADING_DEVICES"
EMISSION_TYPE = "application/vnd.deep-framework-mechanics.observations+json"


@dataclass(frozen=True)
class Ticket:
    """What one run of one submission is graded with: the seed, the devices, and a number that names the run."""

    seed: int
    devices: tuple[str, ...] = ("cpu",)
    run: str = field(default_factory=lambda: secrets.token_hex(16))

    def environment(self) -> dict[str, str]:
        """Return the variables by which ``check`` knows that it is grading."""
        values = (str(self.seed), self.run, ",".join(self.devices))
        return dict(zip((GRADING_SEED_VARIABLE, GRADING_RUN_VARIABLE, GRADING_DEVICES_VARIABLE), values, strict=True))


@dataclass(frozen=True)
class Judgement:
    """The score of one check cell. ``reason`` is a sentence where it is zero for another cause than what differs."""

    cell: str
    exercise: str
    points: float
    maximum: float
    reason: str | None = None
    misconception: str | None = None
    differing: tuple[str, ...] = ()


def grading_seed(text: str) -> int:
    """Return the seed that a grading secret stands for: any text, so that an instructor may choose a phrase."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") + 1
