"""What grading the corpus of tests/hostile came to, counted over its families and the processes that graded them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hostile.case import Case, GradedClass


@dataclass
class Figures:
    """How many cases there were, scores of classmates that moved, submissions without a word, and points too many."""

    cases: int = 0
    changed: int = 0
    lost: int = 0
    forged: float = 0.0

    def add(self, cases: Sequence[Case], graded: GradedClass, undisturbed: dict[str, dict[str, float]]) -> None:
        """Count one family."""
        self.cases += len(cases)
        self.changed += sum(graded.scores.get(name) != scores for name, scores in undisturbed.items())
        reported = {outcome["student"] for outcome in graded.outcomes if outcome["sentence"]}
        for case in cases:
            given = graded.scores.get(case.name)
            self.lost += given is None and (case.scores is not None or case.name not in reported)
            for exercise, points in (given or {}).items():
                self.forged += max(0.0, points - (case.scores or {}).get(exercise, 0.0))

    def add_all(self, others: Mapping[str, float]) -> None:
        """Add what another process has counted."""
        for name, count in others.items():
            setattr(self, name, getattr(self, name) + count)

    def as_data(self) -> dict[str, float]:
        """Return the counts, to be sent to another process."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"hostile and broken submissions: {self.cases} cases, {self.changed} classmates' scores changed, "
            f"{self.lost} submissions lost, {self.forged:g} points forged"
        )


FIGURES = Figures()
