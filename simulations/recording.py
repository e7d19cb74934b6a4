"""Watching one call of a module, and one backward pass, without touching the module: who is called, with what, when."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_file
from torch.overrides import TorchFunctionMode, resolve_name

from autograder.time_limit import Clock, OutOfTime, time_limit
from simulations.trace import Trace, norm_text, number, shape_text

SYMBOLS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "matmul": "@", "cat": "cat"}
MOST_BOXES = 40
MOST_EVENTS = 3_000


@dataclass
class Flow:
    """Boxes (calls and operators directly in the model's forward) and the tensors that went between them."""

    boxes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    producers: dict[int, int] = field(default_factory=dict)
    alive: list[torch.Tensor] = field(default_factory=list)

    def produce(self, value: Any, box: int) -> None:
        """Note that these tensors came out of a box. They are kept alive, so that no identity is used twice."""
        for tensor in tensors_in(value):
            self.producers[id(tensor)] = box
            self.alive.append(tensor)

    def consume(self, value: Any, box: int) -> None:
        """Draw an edge from whatever made these tensors to a box."""
        for tensor in tensors_in(value):
            source = self.producers.get(id(tensor))
            edge = {"from": source, "to": box, "shape": shape_text(tensor.shape)}
            if source is not None and source != box and edge not in self.edges:
                self.edges.append(edge)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in a value, through lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def shapes_text(value: Any) -> str:
    """Return what a value is in few words: the shapes of its tensors, or its type."""
    found = [shape_text(tensor.shape) for tensor in tensors_in(value)]
    if found:
        return ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
    if isinstance(value, tuple) and all(item is None for item in value):
        return ", ".join("None" for _ in value) or "nothing"
    return "None" if value is None else type(value).__name__


class CallRecorder:
    """Adds to a trace what happens while ``run`` calls a module: enter, operator, exit, gradient, or an error.

    ``paths`` maps the id of each module to its node. Watching uses torch's global hooks and a function mode, so that
    the module's own hook tables stay as they are.
    """

    def __init__(self, trace: Trace, module: nn.Module, paths: Mapping[int, str], operators: bool = True) -> None:
        self.trace, self.module, self.paths, self.operators = trace, module, paths, operators
        self.stack: list[str] = []
        self.calls: dict[str, int] = {}
        self.flow = Flow()
        self.outputs: list[tuple[str, torch.Tensor]] = []
        self.handles: list[Any] = []

    def run(self, inputs: Sequence[Any], keywords: Mapping[str, Any], seconds: float = 10.0) -> Any:
        """Call the module and return its output, or None after an error event. Bounded in time and in events."""
        place = len(self.flow.boxes)
        self.flow.boxes.append({"kind": "value", "label": "input", "at": 0, "shape": shapes_text((inputs, keywords))})
        self.flow.produce((inputs, keywords), place)
        try:
            with self._watching(), time_limit(Clock(seconds)):
                return self.module(*inputs, **keywords)
        except KeyboardInterrupt:
            raise
        except OutOfTime:
            self._broke(f"forward did not return within {seconds:g} seconds")
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            self._broke(f"{type(error).__name__}: {lines[0][:300]}")
        return None

    def _broke(self, said: str) -> None:
        node = self.stack[-1] if self.stack else self.paths[id(self.module)]
        self.trace.event(
            "error",
            f"{node} broke: {said}",
            node,
            "orphan",
            tag="error",
            set={node: {"error": ["orphan", "broke here"], "details": {"error": said}}},
        )

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        recorder = self

        class Operators(TorchFunctionMode):
            def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None):
                result = function(*args, **(kwargs or {}))
                recorder._operator(function, (args, kwargs or {}), result)
                return result

        handles = [
            module_file.register_module_forward_pre_hook(lambda m, i: self._enter(m, i)),
            module_file.register_module_forward_hook(lambda m, i, o: self._exit(m, i, o)),
        ]
        quiet = contextlib.ExitStack()
        with quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
            if self.operators:
                quiet.enter_context(Operators())
            try:
                yield
            finally:
                for handle in handles:
                    handle.remove()

    def _enter(self, module: nn.Module, inputs: Any) -> None:
        node = self.paths.get(id(module))
        if node is None or len(self.trace.events) > MOST_EVENTS:
            return
        self.stack.append(node)
        call = self.calls[node] = self.calls.get(node, 0) + 1
        again = f" (call {call})" if call > 1 else ""
        label = "input" if len(self.stack) == 1 else node.rpartition(".")[2]
        said = shapes_text(inputs)
        index = self.trace.event(
            "enter",
            f"{node}, a {type(module).__name__}, is called with {said}{again}",
            node,
            "forward",
            tag="call",
            set={node: {"io": ["plain", f"{said} →"], "details": {"input": said}}},
        )
        if len(self.stack) == 2 and len(self.flow.boxes) < MOST_BOXES:
            box = {"kind": "module", "label": label, "type": type(module).__name__, "node": node, "at": index}
            self.flow.boxes.append(box)
            self.flow.consume(inputs, len(self.flow.boxes) - 1)

    def _exit(self, module: nn.Module, inputs: Any, output: Any) -> None:
        node = self.paths.get(id(module))
        if node is None or node not in self.stack or len(self.trace.events) > MOST_EVENTS:
            return
        while self.stack.pop() != node:
            pass
        said = shapes_text(output)
        details = {"input": shapes_text(inputs), "output": said, "calls": str(self.calls[node]), **_summary(output)}
        index = self.trace.event(
            "exit",
            f"{node} returns {said}",
            node,
            "forward",
            tag="return",
            level=1 if len(self.stack) <= 1 else 2,
            set={node: {"io": ["plain", f"{shapes_text(inputs)} → {said}"], "details": details}},
        )
        if len(self.stack) == 1:
            self._close_box(node, output, said, index)
        for tensor in tensors_in(output):
            if tensor.requires_grad:
                self.outputs.append((node, tensor))

    def _close_box(self, node: str, output: Any, said: str, index: int) -> None:
        for place in range(len(self.flow.boxes) - 1, -1, -1):
            if self.flow.boxes[place].get("node") == node:
                self.flow.boxes[place].update(shape=said, until=index)
                self.flow.produce(output, place)
                return

    def _operator(self, function: Callable, inputs: Any, result: Any) -> None:
        if not self.stack or not tensors_in(result) or len(self.trace.events) > MOST_EVENTS:
            return
        name = (resolve_name(function) or getattr(function, "__name__", "operator")).rpartition(".")[2].strip("_")
        if name in ("get", "detach", "data", "requires_grad", "to"):
            return
        node, said = self.stack[-1], shapes_text(result)
        top = len(self.stack) == 1
        index = self.trace.event(
            "operator",
            f"{node} computes {name}({shapes_text(inputs)}) = {said}",
            node,
            "plain",
            tag="operator",
            level=1 if top else 2,
        )
        if top and len(self.flow.boxes) < MOST_BOXES:
            label = SYMBOLS.get(name.strip("_").removeprefix("i").removeprefix("r"), name)
            self.flow.boxes.append({"kind": "operator", "label": label, "shape": said, "at": index, "type": ""})
            self.flow.consume(inputs, len(self.flow.boxes) - 1)
            self.flow.produce(result, len(self.flow.boxes) - 1)

    def backward(self, output: Any, names: Mapping[int, str]) -> None:
        """Run backward from the mean of the outputs; ``names`` maps the id of each parameter to its node.

        Gradients are seen by hooks on tensors, in the order in which autograd really delivers them.
        """
        ends = [tensor for tensor in tensors_in(output) if tensor.requires_grad and tensor.is_floating_point()]
        if not ends:
            self.trace.event("loss", "no output asks for a gradient, so there is no backward pass", tag="backward")
            return
        loss = sum(tensor.mean() for tensor in ends)
        self.trace.event("loss", f"the mean of the output is taken as a loss: {number(loss.item())}", tag="loss")
        handles = [tensor.register_hook(self._saw_gradient(node)) for node, tensor in self.outputs]
        leaves = [p for p in self.module.parameters() if p.requires_grad and p.is_leaf]
        handles += [p.register_post_accumulate_grad_hook(self._saw_parameter(names[id(p)])) for p in leaves]
        try:
            for parameter in leaves:
                parameter.grad = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss.backward()
        except RuntimeError as error:
            self._broke(f"backward stopped: {str(error).splitlines()[0][:300]}")
        finally:
            for handle in handles:
                handle.remove()

    def _saw_gradient(self, node: str) -> Callable[[torch.Tensor], None]:
        def saw(gradient: torch.Tensor) -> None:
            norm = norm_text(float(gradient.detach().float().norm()))
            self.trace.event(
                "gradient",
                f"the gradient reaches the output of {node}: norm {norm}",
                node,
                "backward",
                tag="gradient",
                level=1 if node.count(".") <= 1 else 2,
                set={node: {"details": {**self._known(node), "gradient at its output": f"norm {norm}"}}},
            )

        return saw

    def _known(self, node: str) -> dict[str, Any]:
        for event in reversed(self.trace.events):
            if found := event.get("set", {}).get(node, {}).get("details"):
                return found
        return {}

    def _saw_parameter(self, node: str) -> Callable[[torch.Tensor], None]:
        def saw(parameter: torch.Tensor) -> None:
            norm = norm_text(float(parameter.grad.detach().float().norm()))
            self.trace.event(
                "parameter gradient",
                f"{node}.grad is filled: norm {norm}",
                node,
                "parameter",
                tag="gradient",
                level=2,
                set={node: {"gradient": ["backward", f"grad {norm}"], "details": {"gradient": f"norm {norm}"}}},
            )

        return saw


def _summary(output: Any) -> dict[str, str]:
    found = [tensor for tensor in tensors_in(output) if tensor.is_floating_point() and tensor.numel()]
    if not found:
        return {}
    # A plain float64 copy: neither autograd nor the modes around this recorder may see the summary being taken.
    with torch._C.DisableTorchFunction(), torch.no_grad():
        values = found[0].detach().double()
        deviation = values.std(correction=0)
        return {
            "output mean ± std": f"{number(values.mean().item())} ± {number(deviation.item())}",
            "output range": f"{number(values.min().item())} to {number(values.max().item())}",
            "made by": type(found[0].grad_fn).__name__ if found[0].grad_fn is not None else "no grad_fn",
        }
