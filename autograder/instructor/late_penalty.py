"""What a late submission costs: nbgrader's plugin, with a grace period and a price a day."""

from __future__ import annotations

import math

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Enum, Float

DAY = 24 * 60 * 60.0
PERCENT, POINTS = "percent", "points"


class PenaltyPerDay(LateSubmissionPlugin):
    """Takes off so much for every day that has begun after the due date, a student's own extension included.

    Within the grace period nothing is taken off; after it the days count from the due date. nbgrader keeps the
    penalty beside the score, so that a grader sees both and may forgive it.
    """

    per_day = Float(0.0, min=0.0, help="What each day that has begun costs. 0: nothing.").tag(config=True)
    unit = Enum(
        (PERCENT, POINTS), PERCENT, help="percent: of what was scored in the notebook; points: as they are."
    ).tag(config=True)
    grace_minutes = Float(0.0, min=0.0, help="How late a submission may be at no cost.").tag(config=True)
    at_most = Float(
        None, allow_none=True, min=0.0, help="The most that is taken off, in the same unit. None: all of it."
    ).tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points to take off, at most ``score``; None when nothing is."""
        if total_seconds_late <= 60 * self.grace_minutes or not self.per_day:
            return None
        off = self.per_day * math.ceil(total_seconds_late / DAY)
        if self.at_most is not None:
            off = min(off, self.at_most)
        if self.unit == PERCENT:
            off = score * off / 100
        penalty = round(min(off, score), 2)
        self.log.info("%s is %.0f seconds late: %.2f points are taken off", student_id, total_seconds_late, penalty)
        return penalty
