"""Running a probe: what an implementation does, observed step by step, until it ends or breaks."""

from __future__ import annotations

import contextlib
import io
import linecache
import random
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from autograder.cases import Case
from autograder.exercise import Exercise
from autograder.snapshot import Raised, snapshot
from autograder.time_limit import Clock, OutOfTime, time_limit

LONGEST_OUTPUT = 4_000
_OWN_FOLDER = str(Path(__file__).parent)
_LIBRARY_FOLDERS = tuple({sysconfig.get_paths()[key] for key in ("stdlib", "purelib", "platlib")})


class Observation(NamedTuple):
    """One thing seen: its name, a frozen value, and the tolerance that the probe asks for (None: the dtype's own)."""

    name: str
    value: Any
    tolerance: float | None = None


@dataclass(frozen=True)
class Stop:
    """Why a probe ended early. ``line`` and ``text`` name the student's line, where the traceback holds one."""

    type_name: str
    message: str
    line: int | None = None
    text: str | None = None
    out_of_time: bool = False


@dataclass
class Record:
    """Everything one implementation showed in one case, in order. What was seen before a stop is kept."""

    case: str
    observations: list[Observation] = field(default_factory=list)
    stop: Stop | None = None
    printed: str = ""
    warned: list[str] = field(default_factory=list)


class _BoundedText(io.StringIO):
    """Keeps the first characters written and drops the rest, so that a print in a loop cannot fill the memory."""

    def write(self, text: str) -> int:
        room = LONGEST_OUTPUT - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)


def attempt(action: Callable[[], Any]) -> Any:
    """Run ``action`` for the exception it should raise: return Raised, or the text ``no error``.

    NotImplementedError passes through: an unwritten part is not an answer.
    """
    try:
        action()
    except NotImplementedError:
        raise
    except Exception as error:
        return Raised(type(error).__name__, tuple(base.__name__ for base in type(error).__mro__[1:-2]))
    return "no error"


@contextlib.contextmanager
def quiet_surroundings(case: Case, printed: io.StringIO, warned: list[str]) -> Iterator[None]:
    """Give a probe its own seed and put back afterwards what it may disturb: random states, grad mode, threads.

    It runs on one thread: on a machine that others use, threads that wait for each other over tiny tensors take a
    hundred times as long as the work. What is printed and warned meanwhile is collected instead of shown.
    """
    grad_mode, python_state, default_dtype = torch.is_grad_enabled(), random.getstate(), torch.get_default_dtype()
    threads = torch.get_num_threads()
    cuda_devices = list(range(torch.cuda.device_count())) if case.device == "cuda" else []
    with (
        torch.random.fork_rng(cuda_devices),
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        torch.manual_seed(case.seed)
        random.seed(case.seed)
        torch.set_grad_enabled(True)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_grad_enabled(grad_mode)
            torch.set_default_dtype(default_dtype)
            torch.set_num_threads(threads)
            random.setstate(python_state)
            warned.extend(dict.fromkeys(str(warning.message)[:300] for warning in caught[:20]))


def observe(exercise: Exercise, parts: Sequence[Any], case: Case, clock: Clock | None = None) -> Record:
    """Run the exercise's probe on an implementation in one case and return what was seen.

    ``clock`` bounds the time. Nothing that the implementation raises leaves this function, except KeyboardInterrupt,
    which belongs to the person at the keyboard.
    """
    record, printed = Record(case.name), _BoundedText()
    make, case = exercise.assemble(parts), case.fresh()
    limit = time_limit(clock) if clock is not None else contextlib.nullcontext()
    try:
        with quiet_surroundings(case, printed, record.warned), limit:
            for name, value, *tolerance in exercise.observe(make, case):
                record.observations.append(Observation(name, snapshot(value), *tolerance))
                # A layer that catches everything swallows the alarm too: it is asked again between observations.
                if clock is not None and clock.is_over():
                    raise OutOfTime
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        record.stop = _stop(error)
    record.printed = printed.getvalue()
    return record


def observe_all(
    exercise: Exercise, parts: Sequence[Any], cases: Sequence[Case], seconds: float | None = None
) -> list[Record]:
    """Observe every case in order. When the time is used up, the cases that are left get an OutOfTime stop."""
    clock = None if seconds is None else Clock(seconds)
    records: list[Record] = []
    for case in cases:
        if records and records[-1].stop is not None and records[-1].stop.out_of_time:
            records.append(Record(case.name, stop=records[-1].stop))
        else:
            records.append(observe(exercise, parts, case, clock))
    return records


def _stop(error: BaseException) -> Stop:
    line, text = _student_line(error)
    lines = str(error).strip().splitlines()
    message = lines[0] if lines else ""
    # The first line of torch's longer messages often only announces what the second one says.
    if message.endswith(":") and len(lines) > 1:
        message = f"{message} {lines[1].strip()}"
    return Stop(type(error).__name__, message[:400], line, text, isinstance(error, OutOfTime))


def _student_line(error: BaseException) -> tuple[int | None, str | None]:
    """Return the number and text of the innermost line that is neither ours, torch's nor Python's."""
    if isinstance(error, SyntaxError) and error.text:
        return error.lineno, error.text.strip()
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if file.startswith((_OWN_FOLDER, "<frozen")) or file.startswith(_LIBRARY_FOLDERS):
            continue
        return number, linecache.getline(file, number, frame.f_globals).strip() or None
    return None, None
