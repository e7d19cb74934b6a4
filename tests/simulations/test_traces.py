"""What is recorded: real torch, the same every time, and nothing of the learner's moved."""

from __future__ import annotations

import json
import random
import re
import warnings

import pytest
import torch

import simulations
from simulations.call_or_forward import WAYS, watch_lines
from simulations.call_or_forward import record as record_call
from simulations.hooks_firing import record as record_hooks
from simulations.module_structure import TOURS
from simulations.module_structure import record as record_structure
from simulations.trace import Trace, encoded, number, rounded, snapped
from tests.simulations.golden import CLASSES, changes, committed, recorded


@pytest.mark.parametrize("name", CLASSES)
def test_torch_does_what_it_did_when_the_trace_was_committed(name: str) -> None:
    found = changes(committed(name), recorded(name), name)
    remedy = (
        "If torch was meant to change: python -m tests.simulations.golden, and read the chapters that say otherwise."
    )
    assert not found, f"{len(found)} values of {name} changed.\n" + "\n".join([*found[:8], remedy])


@pytest.mark.parametrize("name", CLASSES)
def test_a_recording_repeats_itself_and_holds_no_address(name: str) -> None:
    first = encoded(recorded(name))
    torch.rand(7)
    assert encoded(recorded(name)) == first
    assert not re.search(r"0x[0-9a-f]{6,}|/home/|/tmp/|/work/|\.py:\d", first)


@pytest.mark.parametrize("name", CLASSES)
def test_recording_and_plotting_leave_the_random_states_and_modes_alone(name: str) -> None:
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(1), random.random()
    torch.manual_seed(5)
    random.seed(5)
    simulation = getattr(simulations, name)()
    simulation.plot(simulation.page())
    assert torch.equal(torch.rand(1), expected[0]) and random.random() == expected[1]
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("name", CLASSES)
def test_every_control_records_with_each_of_its_values(name: str) -> None:
    simulation = getattr(simulations, name)()
    controls = simulation.controls()
    assert controls, "a simulation without a control is a film"
    start = {key: control.value for key, control in controls.items()}
    plain = encoded(simulation.page(**start).as_data())
    for key, control in controls.items():
        assert control.description
        values = [value for _, value in control.options] if hasattr(control, "options") else [
            getattr(control, "min", False), getattr(control, "max", True)
        ]  # fmt: skip
        pages = [simulation.page(**{**start, key: value}) for value in values]
        assert any(encoded(page.as_data()) != plain for page in pages), f"{key} changes nothing"
        drawn = simulation.plot(pages[-1], **{**start, key: values[-1]})
        if drawn is not None:
            assert drawn[0].startswith(b"\x89PNG") and len(drawn[1]) > 10


@pytest.mark.parametrize("name", CLASSES)
def test_each_event_says_something_and_points_at_what_exists(name: str) -> None:
    for variant in recorded(name)["variants"]:
        trace = variant["trace"]
        known = {node["id"] for node in trace["nodes"]}
        for event in trace["events"]:
            assert event["say"].strip()
            assert set(event.get("set", {})) | ({event["node"]} if "node" in event else set()) <= known
            for source, line in [*event.get("run", []), *event.get("missed", []), *filter(None, [event.get("line")])]:
                assert 0 <= line < len(trace["sources"][source]["lines"])
        assert 0 <= trace["opens"] < len(trace["events"])


@pytest.mark.parametrize("asks", [True, False])
def test_hooks_fire_in_the_order_in_which_plain_hooks_are_called(asks: bool) -> None:
    seen: list[tuple[str, str]] = []
    with torch.random.fork_rng([]):
        torch.manual_seed(2)
        model = simulations.hooks_firing.HookNet()
        x = torch.randn(4, 8).requires_grad_(asks)
    for path, module in [("model", model), *((f"model.{n}", m) for n, m in model.named_children())]:
        module.register_forward_pre_hook(lambda *a, p=path: seen.append(("forward_pre", p)))
        module.register_forward_hook(lambda *a, p=path: seen.append(("forward", p)))
        module.register_full_backward_pre_hook(lambda *a, p=path: seen.append(("full_backward_pre", p)))
        module.register_full_backward_hook(lambda *a, p=path: seen.append(("full_backward", p)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(x).square().mean().backward()
    events = record_hooks(input_asks=asks).events
    assert [(e["kind"], e["node"]) for e in events if e["kind"] in dict(seen)] == seen
    backward = [path for kind, path in seen if kind == "full_backward"]
    assert backward.index("model") == (3 if asks else 0)


def test_a_hook_that_returns_something_changes_what_follows() -> None:
    plain, replaced = record_hooks(), record_hooks(replacing=True)
    assert [e["kind"] for e in plain.events] == [e["kind"] for e in replaced.events]
    losses = [next(e["say"] for e in trace.events if e["kind"] == "loss") for trace in (plain, replaced)]
    assert losses[0] != losses[1]


def test_forward_alone_runs_one_line_and_no_hook() -> None:
    ends = {way: record_call(way).events[-1] for way in WAYS}
    counts = {way: len(event["run"]) for way, event in ends.items()}
    assert counts["layer.forward(x), with hooks"] == 1 < counts["layer(x), no hooks"] < counts["layer(x), with hooks"]
    assert [event["facts"]["hooks"] for event in ends.values()] == [0, 2, 0]


def test_watching_lines_puts_the_previous_trace_function_back() -> None:
    import sys

    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        watch_lines(lambda: 1 / 0, {})
    assert sys.gettrace() is before


def test_the_tours_end_where_a_module_really_puts_the_values() -> None:
    trace = record_structure("six values, four homes")
    found = {e["node"]: e["set"][e["node"]]["bins"] for e in trace.events if e["kind"] == "route"}
    assert found == {
        "fc": ["_modules"],
        "scale": ["_parameters"],
        "mean": ["_buffers"],
        "mask": ["__dict__"],
        "layers": ["__dict__"],
        "name": ["__dict__"],
    }
    refused = [e["say"] for e in record_structure(list(TOURS)[1]).events if e.get("tag") == "refused"]
    assert len(refused) == 2 and all("TypeError" in said for said in refused)


def test_a_trace_takes_plain_data_only() -> None:
    trace = Trace("x", "x", "x")
    trace.event("a", "b", set={"n": {"value": torch.ones(1)}})
    with pytest.raises(TypeError, match="plain data only"):
        trace.as_data()


def test_numbers_are_cut_alike_everywhere() -> None:
    assert rounded(0.123456789) == 0.1235 and rounded(float("nan")) is None and rounded(123456.0) == 123500.0
    assert number(0.000123456) == "0.000123" and number(float("nan")) == "nan"
    assert snapped({"a": 1.0, "b": 1e-7}) == {"a": 1.0, "b": 0.0}
    assert json.loads(encoded({"a": "</script>"})) == {"a": "</script>"} and "<" not in encoded({"a": "</script>"})
