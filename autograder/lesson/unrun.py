"""A check cell run before its answer cell, or after a kernel restart: one sentence instead of a traceback."""

from __future__ import annotations

import re
import sys
from typing import Any

CHECK_CELL = re.compile(r"^check\(", re.MULTILINE)


def explain_unrun_answers() -> None:
    """Let IPython say what to run when a check cell names something that does not exist yet.

    Every other NameError is shown as it always is. Does nothing outside IPython.
    """
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    shell = get_ipython()
    # Somebody else's handler stays: a course has no business with it.
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NameError,), _shown)


def _shown(shell: Any, kind: type, error: NameError, traceback: Any, tb_offset: int | None = None) -> list[str]:
    cells = shell.user_ns.get("In") or [""]
    if traceback is not None and traceback.tb_next is not None:
        # The first frame is IPython's own, the second the cell; a third means that something called by it broke.
        deeper = traceback.tb_next.tb_next is not None
    else:
        deeper = False
    if error.name and not deeper and CHECK_CELL.search(cells[-1]):
        said = (
            f"NameError: {error.name} does not exist yet in this kernel. Run the cell with your answer (and the first "
            "cell of the chapter), then this one. After a restart: Run, Run All Above Selected Cell."
        )
        shell._showtraceback(kind, error, [said])
        return [said]
    lines = shell.InteractiveTB.structured_traceback(kind, error, traceback, tb_offset=tb_offset)
    shell._showtraceback(kind, error, lines)
    return lines
