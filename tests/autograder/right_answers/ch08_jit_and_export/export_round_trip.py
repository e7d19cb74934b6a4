"""Right round trips: a copy, the model itself with its mode put back, a detour over memory, and named rows."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, export, load, save


def save_a_copy(model, example, path):
    save(export(copy.deepcopy(model).eval(), (example,), dynamic_shapes=({0: Dim("rows")},)), path)


def load_the_module(path):
    return load(path).module()


def save_with_mode_put_back(model, example, path):
    training = {name: module.training for name, module in model.named_modules()}
    model.eval()
    program = export(model, (), {"x": example}, dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    torch.export.save(program, Path(path), extra_files={"author": "me"})
    for name, module in model.named_modules():
        module.training = training[name]


class Answering(nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, x):
        return self.program(x=x)

    def named_buffers(self, *args, **kwargs):
        return self.program.named_buffers(*args, **kwargs)


def load_behind_a_name(path):
    return Answering(torch.export.load(Path(path)).module())


def save_through_memory(model, example, path):
    memory = io.BytesIO()
    mine = copy.deepcopy(model)
    mine.train(False)
    with torch.no_grad():
        program = export(mine, (torch.zeros(9, example.shape[1], device=example.device),), strict=False,
                         dynamic_shapes={"x": {0: Dim.AUTO, 1: Dim.STATIC}})  # fmt: skip
        program.module()(example)  # a trial on a copy, whose buffers are put back below
    program.state_dict.update(copy.deepcopy(model.state_dict()))
    torch.export.save(export(copy.deepcopy(model).eval(), program.example_inputs[0],
                             dynamic_shapes={"x": {0: Dim.AUTO}}), memory)  # fmt: skip
    Path(path).write_bytes(memory.getvalue())


def load_from_memory(path):
    with open(path, "rb") as file:
        return torch.export.load(io.BytesIO(file.read())).module()


right_answers = [
    (save_a_copy, load_the_module),
    (save_with_mode_put_back, load_behind_a_name),
    (save_through_memory, load_from_memory),
]
