"""Bring your own module: what the inspector says of it, and that it leaves it as it was."""

from __future__ import annotations

import copy
import time
import warnings
from typing import Any

import pytest
import torch
import torchinfo
from torch import nn

from simulations import show
from simulations.model_inspector import MODELS, folded
from simulations.scan import scan
from simulations.trace import Trace


def _trace(page: Any) -> Trace:
    (trace,) = page.variants.values()
    return trace


def _said(page: Any) -> str:
    return " ".join(event["say"] for event in _trace(page).events)


def _details(page: Any, node: str) -> dict[str, str]:
    trace = _trace(page)
    found = dict(next(one for one in trace.nodes if one["id"] == node)["details"])
    for event in trace.events:
        found.update(event.get("set", {}).get(node, {}).get("details", {}))
    return found


@pytest.mark.parametrize("name", list(MODELS))
def test_counts_and_shapes_are_those_of_torchinfo(name: str) -> None:
    build, draw = MODELS[name]
    torch.manual_seed(0)
    model, x = build(), draw(2)
    theirs = torchinfo.summary(model, input_data=x, verbose=0)
    page = show(model, x)
    ours = int(_trace(page).events[0]["facts"]["parameters"].replace(",", ""))
    # torchinfo adds up its rows and so counts a tied weight at each of its two places; torch's own count is ours.
    tied = 100 * 16 if name == "Tied weights" else 0
    assert ours == sum(p.numel() for p in model.parameters()) == theirs.total_params - tied
    shapes = {}
    for layer in theirs.summary_list:
        path = ".".join([*(p.var_name for p in _parents(layer)), layer.var_name])
        shapes[path.replace(layer.class_name, "model") if layer.depth == 0 else path] = layer.output_size
    for path, shape in shapes.items():
        node = "model" if "." not in path else f"model.{path.split('.', 1)[1]}"
        said = _details(page, node).get("output")
        if said is None:
            # MultiheadAttention reads the weights of out_proj and never calls it: torchinfo lists it all the same.
            assert "out_proj" in node
            continue
        if all(isinstance(size, int) for size in shape):
            assert said.split(",")[0] == "×".join(map(str, shape))


def _parents(layer: Any) -> list[Any]:
    chain = []
    while layer.parent_info is not None:
        layer = layer.parent_info
        chain.insert(0, layer)
    return chain


class Everything(nn.Module):
    """A module with one of everything that the inspector has a row for."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("scratch", torch.ones(4), persistent=False)
        self.lost = [nn.Linear(4, 4)]
        self.free = torch.ones(4, requires_grad=True)
        self.calls = 0
        self.first.register_forward_hook(self.note)

    def note(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self.calls += 1

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.norm(self.first(x)) + self.free * self.scratch
        return {"once": self.tied(y), "twice": self.tied(torch.relu(self.lost[0](y)))}


def test_every_row_of_the_comparison_is_there() -> None:
    torch.manual_seed(0)
    page = show(Everything(), torch.randn(3, 4))
    trace = _trace(page)
    nodes = {node["id"]: node for node in trace.nodes}
    assert nodes["model.lost"]["registered"] is False and nodes["model.lost.0.weight"]["registered"] is False
    assert nodes["model.free"]["registered"] is False
    assert nodes["model.tied.weight"]["details"]["same object as"] == "model.first.weight"
    assert nodes["model.scratch"]["details"]["in state_dict"] == "no (persistent=False)"
    assert nodes["model.norm.running_mean"]["kind"] == "buffer"
    assert nodes["model.first"]["details"]["hooks"] == "forward hook note"
    assert nodes["model.first.weight"]["details"]["memory"] == "64 B"
    assert _details(page, "model.tied")["calls"] == "2"
    assert "norm" in _details(page, "model.first.weight")["gradient"]
    flow = next(view for view in trace.views if view["kind"] == "flow")
    labels = [box["label"] for box in flow["boxes"]]
    plus, norm = labels.index("+"), labels.index("norm")
    assert {"from": norm, "to": plus, "shape": "3×4"} in flow["edges"]


def test_the_module_is_left_exactly_as_it_was() -> None:
    torch.manual_seed(0)
    module = Everything()
    module(torch.randn(3, 4))["once"].sum().backward()
    module.eval()
    before = copy.deepcopy(module.state_dict())
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    kept = {name: p.grad for name, p in module.named_parameters()}
    attributes = {id(m): dict(vars(m)) for m in module.modules()}
    hooks = [dict(m._forward_hooks) for m in module.modules()]
    state = torch.get_rng_state()
    module.train()
    show(module, torch.randn(3, 4, generator=torch.Generator().manual_seed(1)))
    assert module.training
    module.eval()
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    for name, parameter in module.named_parameters():
        assert parameter.grad is kept[name]
        assert parameter.grad is None or torch.equal(parameter.grad, gradients[name])
    assert {id(m): dict(vars(m)) for m in module.modules()} == attributes
    assert [dict(m._forward_hooks) for m in module.modules()] == hooks
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.nn.modules.module._global_forward_hooks


class NoInit(nn.Module):
    def __init__(self) -> None:
        pass


class Endless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            x = x + 1


class Printing(nn.Module):
    def forward(self, x: torch.Tensor) -> None:
        print("a line of the learner's own")


def _scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("module", "inputs", "sentence"),
    [
        (NoInit(), (), "has not called super().__init__()"),
        (nn.Linear, (), "Linear is a class; build one first"),
        (lambda x: x, (), "A Module is needed, and this is an object of type function"),
        (_scripted(), (torch.ones(1, 2),), "A ScriptModule runs outside Python"),
        (torch.compile(nn.Linear(2, 2)), (torch.ones(1, 2),), "A compiled module hides its inside"),
        (nn.Linear(2, 2, device="meta"), (torch.ones(1, 2),), "lies on the meta device"),
        (nn.Sequential(nn.LazyLinear(2)), (torch.ones(1, 2),), "0 (LazyLinear) is lazy and has no shapes yet"),
        (nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 2)), (torch.ones(1, 2),), "model.1 broke: RuntimeError: mat1"),
        (nn.Linear(2, 2), (), "model broke: TypeError"),
        (nn.Linear(2, 2), (torch.ones(1, 2), 3), "model broke: TypeError"),
        (nn.ReLU(), (torch.ones(2),), "no output asks for a gradient"),
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), (torch.ones(1, 2),), "the gradient reaches"),
        (Printing(), (torch.ones(1),), "returns None"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_sentence(module: Any, inputs: tuple, sentence: str, capsys) -> None:
    page = show(module, *inputs)
    assert sentence in _said(page)
    assert page._repr_html_() and capsys.readouterr().out == ""


def test_a_forward_that_never_returns_is_ended() -> None:
    assert "did not return within 0.5 seconds" in _said(show(Endless(), torch.ones(1), seconds=0.5))


def test_a_module_of_150_blocks_and_100_million_parameters_stays_readable() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(416)
            self.up = nn.Linear(416, 832)
            self.down = nn.Linear(832, 416)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(torch.relu(self.up(self.norm(x))))

    model = nn.Sequential(*[Block() for _ in range(150)])
    assert sum(p.numel() for p in model.parameters()) > 100_000_000
    start = time.monotonic()
    page = show(model, torch.ones(1, 416))
    # A bound that only something unusable would break; speed itself is measured by `make bench`.
    assert time.monotonic() - start < 60
    trace = _trace(page)
    assert len(trace.nodes) <= 300
    assert any(node["label"] == "0 … 149 (×150)" for node in trace.nodes)
    assert len(page._repr_html_()) < 2_000_000


def test_only_siblings_that_are_alike_fold() -> None:
    layers = [nn.Linear(2, 2) for _ in range(200)]
    layers[7] = nn.Linear(2, 2, bias=False)
    shown, dropped = folded(scan(nn.Sequential(*layers)))
    labels = [entry.label for entry in shown if entry.kind == "module"]
    assert "7" in labels and any("×199" in label for label in labels) and dropped > 300


def test_a_keyword_and_a_name_are_taken() -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.ones(1, 3, 4)
    page = show(attention, x, x, x, need_weights=False, name="attention")
    assert "attention returns" in _said(page) and "attention.out_proj" in _said(page)
