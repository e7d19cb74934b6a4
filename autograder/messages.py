"""Errors that a reader sees as one clear sentence, without a traceback through our code."""

from __future__ import annotations


class _Sentence:
    """Mixed into an exception: IPython shows the sentence alone, and a plain interpreter shows no chained causes."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class UsageError(_Sentence, ValueError):
    """``check`` or ``evaluate`` was called in a way that cannot mean anything; the sentence says what to write."""


class CheckFailed(_Sentence, AssertionError):
    """What was observed differs from the reference; the report above the error says where."""


class NotSolvedYet(_Sentence, NotImplementedError):
    """The exercise still raises NotImplementedError. Shown under that name, which is what the stub raises."""

    def _render_traceback_(self) -> list[str]:
        return [f"NotImplementedError: {self}"]
