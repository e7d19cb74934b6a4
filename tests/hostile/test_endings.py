"""Cells that do not end, end the process, or end whatever they can see."""

from __future__ import annotations

from pathlib import Path

from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, scored
from tests.hostile.family import Family

# Four seconds for a cell, and four more for one that goes on after an interrupt.
LIMITS = {"timeout": 4, "notebook_seconds": 60, "memory_megabytes": 1200, "processes": 32}
AFTER = scored(my_dropout=0, save_and_resume=0)


def _costs_itself(name: str, why: str, source: str, says: str = "") -> Case:
    return Case(name, why, scored(my_dropout=0), {"my_dropout": source}, says=says)


def _costs_the_rest(name: str, why: str, source: str, says: str = "Not run: in code cell 4") -> Case:
    return Case(name, why, AFTER, {"my_dropout": source}, says=says)


CASES = [
    _costs_itself(
        "loop_in_python", "An interrupt ends it; the next cell runs.", "while True:\n    pass", "CellTimeoutError"
    ),
    _costs_itself(
        "sleep", "An interrupt ends it; the next cell runs.", "import time\ntime.sleep(3600)", "CellTimeoutError"
    ),
    _costs_itself("sys_exit", "The kernel catches it, as at home.", "import sys\nsys.exit(0)"),
    _costs_itself("a_syntax_error", "Nothing of the cell runs.", "class MyDropout(nn.Module:\n    pass"),
    _costs_itself(
        "a_recursion",
        "Python ends it.",
        "def deeper(n):\n    return deeper(n + 1)\ndeeper(0)",
        "RecursionError",
    ),
    _costs_itself(
        "raises_what_nobody_catches",
        "A BaseException of one's own is shown like any other.",
        "class Out(BaseException): pass\nraise Out",
    ),
    Case(
        "loop_in_forward",
        "The check is interrupted, and nothing was handed over.",
        scored(my_dropout=0),
        {"my_dropout": RIGHT_DROPOUT.replace("        mask", "        while True:\n            pass\n        mask")},
    ),
    Case(
        "exit_in_forward",
        "SystemExit inside the answer is one of its errors: what was seen before it counts.",
        scored(my_dropout=0.94),
        {"my_dropout": RIGHT_DROPOUT.replace("        mask", "        raise SystemExit\n        mask")},
        says="SystemExit",
    ),
    Case(
        "process_ends_in_forward",
        "The process is gone before it handed anything over.",
        AFTER,
        {"my_dropout": RIGHT_DROPOUT.replace("        mask", "        import os\n        os._exit(0)\n        mask")},
    ),
    _costs_the_rest(
        "loop_in_c",
        "What an interrupt cannot reach is ended, and the cells after it with it.",
        "import itertools\nsum(itertools.repeat(1))",
    ),
    _costs_the_rest(
        "ignores_interrupts",
        "It is ended, and the cells before it keep their points.",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    pass",
        "went on after an interrupt",
    ),
    _costs_the_rest(
        "catches_interrupts",
        "The same where the interrupt is caught.",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "went on after an interrupt",
    ),
    _costs_the_rest("os_exit", "The process is gone.", "import os\nos._exit(0)", "ended with exit code 0"),
    _costs_the_rest("os_abort", "The process is gone.", "import os\nos.abort()", "ended by signal SIGABRT"),
    _costs_the_rest(
        "segfault", "The process is gone.", "import ctypes\nctypes.string_at(0)", "ended by signal SIGSEGV"
    ),
    _costs_the_rest("kills_itself", "The process is gone.", "import os\nos.kill(os.getpid(), 9)"),
    Case(
        "kills_its_parent",
        "The process above it lies in another namespace, or may not be signalled; at most its own run ends.",
        AFTER,
        {
            "my_dropout": "import os, signal\n"
            "try:\n    os.kill(os.getppid(), signal.SIGKILL)\nfinally:\n    os.kill(os.getpid(), 9)"
        },
    ),
    Case(
        "kills_all_that_it_sees",
        "It sees nobody but itself.",
        AFTER,
        {
            "my_dropout": "import os, signal\n"
            "for number in [n for n in range(1, 40000) if n != os.getpid()] + [-1]:\n"
            "    try:\n        os.kill(number, signal.SIGKILL)\n    except OSError:\n        pass\nos.kill(os.getpid(), 9)"
        },
    ),
    Case(
        "kills_its_group_and_session",
        "Nobody else is in its group.",
        AFTER,
        {"my_dropout": "import os, signal\nos.killpg(0, signal.SIGKILL)\nos.kill(os.getpid(), 9)"},
    ),
    _costs_the_rest(
        "execs_another_program",
        "Another program in its place does not talk to the engine.",
        "import os\nos.execv('/bin/true', ['true'])",
    ),
    Case(
        "a_child_meant_to_outlive_it",
        "A child ends with its submission; it costs nothing.",
        scored(),
        {
            "my_dropout": RIGHT_DROPOUT + "\n\nimport subprocess\n"
            "subprocess.Popen(['setsid', 'sleep', '7654.3'], start_new_session=True)\n"
            "subprocess.Popen('trap \"\" HUP TERM INT; nohup sleep 7654.3 & sleep 7654.3', shell=True)\n"
        },
    ),
    Case(
        "a_daemon_meant_to_outlive_it",
        "The same for one that detaches itself twice.",
        scored(),
        {
            "my_dropout": RIGHT_DROPOUT + "\n\nimport os, sys, time\n"
            "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            "        os.execvp('sleep', ['sleep', '7654.3'])\n    os._exit(0)\n"
        },
    ),
    Case(
        "closes_every_descriptor",
        "Without the channel it can say nothing more: what came before keeps its points.",
        AFTER,
        {"my_dropout": "import os\nos.closerange(0, 4096)"},
    ),
    Case(
        "a_debugger_that_waits",
        "There is nobody to answer it.",
        scored(my_dropout=0),
        {"my_dropout": "breakpoint()\n"},
    ),
    Case(
        "input_that_waits",
        "There is nobody to answer it.",
        scored(my_dropout=0),
        {"my_dropout": "name = input('Name: ')"},
        says="StdinNotImplementedError",
    ),
    Case(
        "interrupts_itself_in_the_check",
        "An interrupt that the answer raises ends the check, not the run.",
        scored(my_dropout=0),
        {"my_dropout": RIGHT_DROPOUT.replace("        mask", "        raise KeyboardInterrupt\n        mask")},
    ),
]


class TestEndings(Family):
    """The cells before keep their points, and nobody else notices."""

    def test_no_process_outlives_the_run(self, graded: object) -> None:
        """Neither a child, nor one that ignores signals, nor a daemon."""
        lines = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(entry.read_bytes())
            except OSError:
                continue
        assert not [line for line in lines if b"7654.3" in line]
