"""A cell of the course run before the cells it needs, or after a kernel restart: one sentence instead of a traceback.

``check`` loads this. In the .venv of ``make lab`` every kernel loads it as it starts (ipython_config.py): after a
restart nothing of the course has been imported yet, and its functions are the first names that are missing.
"""

from __future__ import annotations

import re
import sys
from typing import Any

CHECK_CELL = re.compile(r"^check\(", re.MULTILINE)
COURSE_FUNCTIONS = ("check", "predict", "quiz", "recall")


def explain_unrun_answers() -> None:
    """Let IPython say what to run when a check cell names something that does not exist yet.

    Every other NameError is shown as it always is. Does nothing outside IPython.
    """
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        load_ipython_extension(shell)


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython when a kernel starts in an environment that the course is installed in."""
    # Somebody else's handler stays: a course has no business with it.
    if not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), _shown)


def _shown(shell: Any, kind: type, error: NameError, traceback: Any, tb_offset: int | None = None) -> list[str]:
    cells = shell.user_ns.get("In") or [""]
    if traceback is not None and traceback.tb_next is not None:
        # The first frame is IPython's own, the second the cell; a third means that something called by it broke.
        deeper = traceback.tb_next.tb_next is not None
    else:
        deeper = False
    of_the_course = error.name in COURSE_FUNCTIONS
    if error.name and not deeper and (of_the_course or CHECK_CELL.search(cells[-1])):
        first = (
            "the first cell of the chapter"
            if of_the_course
            else "the cell with your answer (and the first cell of the chapter)"
        )
        said = (
            f"NameError: {error.name} does not exist yet in this kernel. Run {first}, then this one. "
            "After a restart: Run, Run All Above Selected Cell."
        )
        shell._showtraceback(kind, error, [said])
        return [said]
    lines = shell.InteractiveTB.structured_traceback(kind, error, traceback, tb_offset=tb_offset)
    shell._showtraceback(kind, error, lines)
    return lines
