"""What an exercise is: a probe, its cases, a reference, and what surrounds them for a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The cases need torch, and the command line does not.
    from autograder.cases import Case


@dataclass(frozen=True)
class Card:
    """What a reader is told before the first line is written.

    ``minutes`` is an honest estimate for a first attempt; ``difficulty`` and ``importance`` go from 1 to 5.
    """

    goal: str
    may_change: str
    specification: tuple[str, ...]
    minutes: int
    difficulty: int
    importance: int
    prerequisites: tuple[str, ...]


@dataclass(frozen=True)
class Hints:
    """Two stages: first a question that points at the idea, then a template with gaps."""

    question: str
    template: str


@dataclass(frozen=True)
class Misconception:
    """A wrong implementation that people really write.

    ``parts`` holds it in the form the exercise takes (one class, or several functions). ``question`` is what a
    student is asked when their observations equal this one's; it never states the fix. ``read`` names a place to
    read. ``rejected_by`` is the observation, by name, that must tell it from the reference; the tests hold it to that.
    """

    name: str
    summary: str
    question: str
    read: str
    rejected_by: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Exercise:
    """One exercise: everything needed to check, diagnose, present and grade it.

    ``observe(make, case)`` is the probe: a generator of ``(name, value)`` or ``(name, value, tolerance)``. ``make`` is
    the implementation itself when the exercise has one part, otherwise a namespace with one attribute a part.
    ``weights`` maps observation names (or a prefix ending in ``*``) to their weight in the score; the default is 1.
    ``forbidden`` lists what the implementation must not hand its work to, by torch's qualified name.
    ``forbidden_code`` lists Python code of torch that must not run on its behalf, by qualified name or a prefix of it.
    ``written_in_steps`` is for long answers: a method that is still to be written then costs what needs it, not all.
    ``compared_with`` completes the sentence "all checks agree with …".
    """

    name: str
    chapter: str
    parts: tuple[str, ...]
    kind: str  # "class" or "functions"
    calls: tuple[tuple[str, tuple, Mapping[str, Any]], ...]
    points: int
    card: Card
    hints: Hints
    observe: Callable[[Any, Case], Iterator[tuple]]
    cases: Callable[[int, str], Sequence[Case]]
    reference: tuple[Any, ...]
    weights: Mapping[str, float] = field(default_factory=dict)
    forbidden_classes: tuple[type, ...] = ()
    forbidden: tuple[str, ...] = ()
    forbidden_code: tuple[str, ...] = ()
    written_in_steps: bool = False
    compared_with: str = "torch"

    def assemble(self, parts: Sequence[Any]) -> Any:
        """Return what the probe drives: the single part, or a namespace of several."""
        if len(self.parts) == 1:
            return parts[0]
        return SimpleNamespace(**dict(zip(self.parts, parts, strict=True)))

    def weight(self, observation: str) -> float:
        """Return the weight of an observation; an exact name wins over a prefix."""
        if observation in self.weights:
            return self.weights[observation]
        for pattern, weight in self.weights.items():
            if pattern.endswith("*") and observation.startswith(pattern[:-1]):
                return weight
        return 1.0

    @property
    def check_call(self) -> str:
        """Return the line that a notebook's check cell holds."""
        return f'check("{self.name}", {", ".join(self.parts)})'
