"""A PyTorch internals course that grades itself: probes run against two implementations, torch's and yours."""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["check", "evaluate", "predict", "preflight", "quiz", "recall"]

_HOMES = {
    "check": "autograder.checking",
    "evaluate": "autograder.evaluation",
    "predict": "autograder.lesson",
    "preflight": "autograder.student.handing_in",
    "quiz": "autograder.lesson",
    "recall": "autograder.lesson",
}


@functools.cache
def _ask_for_torch() -> None:
    """Raise UsageError where torch is missing or another one; once it is right it stays right in this process."""
    from autograder.messages import UsageError
    from autograder.student.doctor import torch_problem

    if problem := torch_problem():
        raise UsageError(problem)


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line and the grader need no torch and no widgets to start.
    if name not in _HOMES:
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    _ask_for_torch()
    if name == "check":
        from autograder.lesson.unrun import explain_unrun_answers

        explain_unrun_answers()
    return getattr(importlib.import_module(_HOMES[name]), name)
