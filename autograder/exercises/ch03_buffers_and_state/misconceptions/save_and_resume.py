"""Checkpoints that forget something. Each leaves out, or adds, one thing."""

from __future__ import annotations

import random
from typing import Any

import torch

from autograder.exercise import Misconception


def _state(model: Any, optimizer: Any, scheduler: Any, epoch: int) -> dict[str, Any]:
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
        "torch_random": torch.get_rng_state(),
        "cuda_random": torch.cuda.get_rng_state_all(),
        "python_random": random.getstate(),
    }


def _restore_random(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch_random"])
    torch.cuda.set_rng_state_all(state["cuda_random"])
    random.setstate(state["python_random"])


def _save(path: str, model: Any, optimizer: Any, scheduler: Any, epoch: int) -> None:
    torch.save(_state(model, optimizer, scheduler, epoch), path)


def _load_without_optimizer(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    scheduler.load_state_dict(state["scheduler"])
    _restore_random(state)
    return state["epoch"] + 1


def _load_without_scheduler(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    _restore_random(state)
    return state["epoch"] + 1


def _load_objects(state: dict[str, Any], model: Any, optimizer: Any, scheduler: Any) -> int:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return state["epoch"] + 1


def _load_without_random(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    return _load_objects(torch.load(path, map_location="cpu"), model, optimizer, scheduler)


def _load_without_python_random(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    torch.set_rng_state(state["torch_random"])
    torch.cuda.set_rng_state_all(state["cuda_random"])
    return _load_objects(state, model, optimizer, scheduler)


def _load_and_seed(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    torch.manual_seed(0)
    random.seed(0)
    return _load_objects(torch.load(path, map_location="cpu"), model, optimizer, scheduler)


def _load_same_epoch(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    _restore_random(state)
    return _load_objects(state, model, optimizer, scheduler) - 1


def _load_and_eval(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    model.eval()
    _restore_random(state)
    return _load_objects(state, model, optimizer, scheduler)


def _load_and_replay(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for _ in range(state["epoch"]):
        scheduler.step()
    _restore_random(state)
    return state["epoch"] + 1


def _save_objects(path: str, model: Any, optimizer: Any, scheduler: Any, epoch: int) -> None:
    torch.save({**_state(model, optimizer, scheduler, epoch), "model": model}, path)


def _load_saved_objects(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu", weights_only=False)
    state["model"] = state["model"].state_dict()
    _restore_random(state)
    return _load_objects(state, model, optimizer, scheduler)


def _save_parameters(path: str, model: Any, optimizer: Any, scheduler: Any, epoch: int) -> None:
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    torch.save({**_state(model, optimizer, scheduler, epoch), "model": parameters}, path)


def _load_parameters(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state.pop("model"), strict=False)
    state["model"] = model.state_dict()
    _restore_random(state)
    return _load_objects(state, model, optimizer, scheduler)


def _misconception(name: str, parts: tuple, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, parts)


misconceptions = (
    _misconception(
        "optimizer_forgotten",
        (_save, _load_without_optimizer),
        "optimizer state after loading",
        "the optimizer starts with its own state",
        "Print `optimizer.state_dict()['state']` before saving and after loading. What does AdamW remember from step "
        "to step?",
        "the section on what a training run consists of in this chapter",
    ),
    _misconception(
        "scheduler_forgotten",
        (_save, _load_without_scheduler),
        "steps that the scheduler has counted",
        "the scheduler starts counting anew",
        "After how many steps does the schedule change the learning rate next, in the run that went on and in yours?",
        "the section on what a training run consists of in this chapter",
    ),
    _misconception(
        "random_states_not_restored",
        (_save, _load_without_random),
        "next random numbers of torch",
        "the random states stay as the new process has them",
        "Loading a file changes no generator by itself. Which call in your code hands torch its random state back?",
        "the section on random states in this chapter",
    ),
    _misconception(
        "python_random_forgotten",
        (_save, _load_without_python_random),
        "next random numbers of Python",
        "only torch's random state comes back",
        "Which library chose the rows of each batch in this run, and where does it keep its state?",
        "the section on random states in this chapter",
    ),
    _misconception(
        "seeded_instead_of_restored",
        (_save, _load_and_seed),
        "next random numbers of torch",
        "a fixed seed is set after loading",
        "A seed names the beginning of a stream. Where in its stream was the run when you saved it?",
        "the section on random states in this chapter",
    ),
    _misconception(
        "same_epoch_again",
        (_save, _load_same_epoch),
        "the epoch to go on with",
        "the epoch that was finished is returned",
        "The saved epoch is complete. Which one should the loop begin with?",
        "the card of this exercise",
    ),
    _misconception(
        "eval_after_loading",
        (_save, _load_and_eval),
        "mode of the model after loading",
        "the model is put into eval mode",
        "What do Dropout and BatchNorm do in the first step after your load?",
        "the section on train() and eval() in this chapter",
    ),
    _misconception(
        "schedule_replayed",
        (_save, _load_and_replay),
        "learning rate after loading",
        "the scheduler is stepped forward instead of loaded",
        "The loaded optimizer already carries the lowered learning rate. What does another step of the scheduler do?",
        "the section on what a training run consists of in this chapter",
    ),
    _misconception(
        "whole_model_pickled",
        (_save_objects, _load_saved_objects),
        "the file opens with torch.load's defaults",
        "the model object is saved instead of its state",
        "What does `torch.load(path)`, without further arguments, say to your file, and which object does it name?",
        "the section on what a file holds in this chapter",
    ),
    _misconception(
        "parameters_only",
        (_save_parameters, _load_parameters),
        "buffers after loading",
        "the parameters are saved, the buffers are not",
        "Which names stand in `model.state_dict()` and not in `dict(model.named_parameters())`?",
        "the section on three homes for a tensor in this chapter",
    ),
)
