"""What the probes of the export exercises share: calls that keep torch's log away, and a look into a program."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from autograder.observe import attempt


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """Keep torch's log of refused exports away; a report says in its own words what went wrong.

    The compiler forgets first what it learned: `torch.cond` compiles what surrounds it, and after many exports in one
    process an entry of an earlier one is taken, with its sizes.
    """
    torch.compiler.reset()
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def answer(run: Callable[[Tensor], Any], x: Tensor) -> Any:
    """Return what ``run`` answers, or the exception that it raises."""
    answers: list[Any] = []
    with torch.no_grad():
        raised = attempt(lambda: answers.append(run(x)))
    return answers[0] if answers else raised


def is_decided_inside(program: ExportedProgram) -> bool:
    """Return whether a decision is an operator of the program."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    return any(node.target is torch.ops.higher_order.cond for graph in graphs for node in graph.nodes)


@functools.cache
def warm_up() -> None:
    """Export something once: the first export loads torch's compiler, which no student should have to wait for."""

    class Absolute(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda one: one * 2, lambda one: -one, (x,))

    with quiet_log():
        export(Absolute(), (torch.ones(2),), dynamic_shapes={"x": {0: Dim.AUTO}}).module()(torch.ones(3))
