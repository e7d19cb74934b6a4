"""The time that a check gives an answer, where the processor is shared with others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from autograder import time_limit


@pytest.mark.parametrize(
    ("passed", "used", "over"),
    [
        (9.9, 9.9, False),
        (10.1, 9.0, True),
        (10.1, 5.1, True),
        (10.1, 4.0, False),
        (29.0, 1.0, False),
        (30.1, 1.0, True),
    ],
)
def test_who_got_no_processor_is_given_time(
    monkeypatch: pytest.MonkeyPatch, passed: float, used: float, over: bool
) -> None:
    now = {"monotonic": 1000.0, "process_time": 50.0}
    clocks = {name: lambda name=name: now[name] for name in now}
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(**clocks))
    clock = time_limit.Clock(10.0)
    now.update(monotonic=1000.0 + passed, process_time=50.0 + used)
    assert clock.is_over() is over
    assert 0 < clock.next_look() <= 10.0
