"""Files that do not hold what their authors believe, and models that did not survive being saved."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from autograder.exercise import Misconception

_ANY_ROWS = {"x": {0: Dim.AUTO}}


def _save(model: nn.Module, example: Tensor, path: str, **options: Any) -> None:
    torch.export.save(
        export(copy.deepcopy(model).eval(), (example,), **({"dynamic_shapes": _ANY_ROWS} | options)), path
    )


def _load(path: str) -> nn.Module:
    return torch.export.load(path).module()


def _save_pickle(model: nn.Module, example: Tensor, path: str) -> None:
    torch.save(copy.deepcopy(model).eval(), path)


def _load_pickle(path: str) -> nn.Module:
    return torch.load(path, weights_only=False)


def _save_trace(model: nn.Module, example: Tensor, path: str) -> None:
    torch.jit.save(torch.jit.trace(copy.deepcopy(model).eval(), example, check_trace=False), path)


def _load_trace(path: str) -> nn.Module:
    return torch.jit.load(path)


def _save_in_training(model: nn.Module, example: Tensor, path: str) -> None:
    torch.export.save(export(copy.deepcopy(model), (example,), dynamic_shapes=_ANY_ROWS), path)


def _save_fixed_rows(model: nn.Module, example: Tensor, path: str) -> None:
    _save(model, example, path, dynamic_shapes=None)


def _save_strict(model: nn.Module, example: Tensor, path: str) -> None:
    _save(model, example, path, strict=True)


def _save_and_stay_in_eval(model: nn.Module, example: Tensor, path: str) -> None:
    model.eval()
    _save(model, example, path)


def _save_after_trying(model: nn.Module, example: Tensor, path: str) -> None:
    mode = model.training
    program = export(model.eval(), (example,), dynamic_shapes=_ANY_ROWS)
    assert torch.allclose(program.module()(example), model(example))
    torch.export.save(program, path)
    model.train(mode)


def _load_program(path: str) -> Any:
    return torch.export.load(path)


def _load_once() -> Callable[[str], nn.Module]:
    return functools.lru_cache(maxsize=1)(_load)


def _misconception(name: str, parts: tuple, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, parts)


_FILE = "the section «A file without a class» in this chapter"

misconceptions = (
    _misconception(
        "whole_model_pickled",
        (_save_pickle, _load_pickle),
        "the file opens with torch.export.load",
        "the model object is pickled, which stores the name of its class and no code",
        "On the other machine the class of the model does not exist. Where does your file keep what `forward` does?",
        _FILE,
    ),
    _misconception(
        "traced_and_saved",
        (_save_trace, _load_trace),
        "the file opens with torch.export.load",
        "the file holds a TorchScript trace",
        "Your file can be run without the class. Would the trace have told you that a branch of the model was lost?",
        "the section «What a trace keeps» in this chapter",
    ),
    _misconception(
        "exported_in_training_mode",
        (_save_in_training, _load),
        "output for the example",
        "the program is written as the model works in training",
        "In which mode was the model at the moment of the export, and what does Dropout do in the program?",
        "the section «A program has one mode» in this chapter",
    ),
    _misconception(
        "rows_of_the_example",
        (_save_fixed_rows, _load),
        "output for many rows",
        "the number of rows is fixed to the example's",
        "What does your loaded program say to a batch of another size, and which line of yours decided that?",
        "the section «One program for any number of rows» in this chapter",
    ),
    _misconception(
        "model_left_in_eval",
        (_save_and_stay_in_eval, _load),
        "mode of the model afterwards",
        "the model that was handed in is left in eval mode",
        "Somebody saves a program after every epoch. In which mode does their second epoch run?",
        "the section «A program has one mode» in this chapter",
    ),
    _misconception(
        "tried_before_saving",
        (_save_after_trying, _load),
        "calls counted in the file",
        "the program is run once before it is saved, and it shares its buffers with the model",
        "Print `model.calls` before and after you try the program. Whose tensor does the program count in?",
        "the section «The program and the model share their tensors» in this chapter",
    ),
    _misconception(
        "rebinding_lost",
        (_save_strict, _load),
        "buffers of the loaded program after these calls",
        "strict export keeps the buffer changed in place and loses the one that is bound anew",
        "Two buffers change in `forward`, in two ways. Which of them does your program still keep up to date?",
        "the section «Buffers that change» in this chapter",
    ),
    _misconception(
        "program_returned",
        (_save, _load_program),
        "output for the example",
        "the loaded program itself is returned, which cannot be called",
        "What does torch answer when you call the object that your `load_program` returns?",
        "the section «What torch.export returns» in this chapter",
    ),
    _misconception(
        "loaded_once",
        (_save, _load_once()),
        "calls counted when the file is loaded again",
        "the loaded program is kept and handed out again, with the state it has by then",
        "Two callers load the same file. When the first one runs the program, what does the second one's counter show?",
        _FILE,
    ),
)
