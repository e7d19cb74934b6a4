"""Wrong multi-task models. Each changes one decision of a model that is otherwise right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception
from autograder.exercises.ch06_containers.multi_task import ReferenceMultiTask


class PlainDict(ReferenceMultiTask):
    def __init__(self, in_features: int, hidden: int, tasks: Mapping[str, int]) -> None:
        super().__init__(in_features, hidden, tasks)
        heads = dict(self.heads.items())
        del self.heads
        self.heads = heads


class HeadsAsAttributes(nn.Module):
    def __init__(self, in_features: int, hidden: int, tasks: Mapping[str, int]) -> None:
        super().__init__()
        self.backbone = nn.Linear(in_features, hidden)
        for task, size in tasks.items():
            setattr(self, f"head_{task}", nn.Linear(hidden, size))

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return getattr(self, f"head_{task}")(torch.relu(self.backbone(x)))

    def add_task(self, task: str, size: int) -> None:
        if hasattr(self, f"head_{task}"):
            raise KeyError(task)
        like = self.backbone.weight
        setattr(self, f"head_{task}", nn.Linear(like.shape[0], size, device=like.device, dtype=like.dtype))


class OneHeadForAll(ReferenceMultiTask):
    def __init__(self, in_features: int, hidden: int, tasks: Mapping[str, int]) -> None:
        super().__init__(in_features, hidden, tasks)
        self.heads = nn.ModuleDict(dict.fromkeys(tasks, nn.Linear(hidden, max(tasks.values()))))


class NoActivation(ReferenceMultiTask):
    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[task](self.backbone(x))


class ActivationLast(ReferenceMultiTask):
    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return torch.relu(self.heads[task](self.backbone(x)))


class BackboneDetached(ReferenceMultiTask):
    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[task](torch.relu(self.backbone(x)).detach())


class FirstHeadInstead(ReferenceMultiTask):
    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        chosen = task if task in self.heads else next(iter(self.heads))
        return super().forward(x, chosen)


class AllHeadsRun(ReferenceMultiTask):
    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        features = torch.relu(self.backbone(x))
        return {name: head(features) for name, head in self.heads.items()}[task]


class NewHeadElsewhere(ReferenceMultiTask):
    def add_task(self, task: str, size: int) -> None:
        if task in self.heads:
            raise KeyError(task)
        self.heads[task] = nn.Linear(self.backbone.out_features, size)


class HeadsMadeAnew(ReferenceMultiTask):
    def add_task(self, task: str, size: int) -> None:
        if task in self.heads:
            raise KeyError(task)
        sizes = {name: head.out_features for name, head in self.heads.items()} | {task: size}
        like = self.backbone.weight
        made = {name: nn.Linear(like.shape[0], count) for name, count in sizes.items()}
        self.heads = nn.ModuleDict(made).to(like.device, like.dtype)


class TakenNameOverwritten(ReferenceMultiTask):
    def add_task(self, task: str, size: int) -> None:
        like = self.backbone.weight
        self.heads[task] = nn.Linear(like.shape[0], size, device=like.device, dtype=like.dtype)


class NumberedHeads(ReferenceMultiTask):
    def __init__(self, in_features: int, hidden: int, tasks: Mapping[str, int]) -> None:
        super().__init__(in_features, hidden, tasks)
        self.names, heads = list(tasks), list(self.heads.values())
        del self.heads
        self.heads: Any = nn.ModuleList(heads)

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        return self.heads[self.names.index(task)](torch.relu(self.backbone(x)))

    def add_task(self, task: str, size: int) -> None:
        if task in self.names:
            raise KeyError(task)
        like = self.backbone.weight
        self.names.append(task)
        self.heads.append(nn.Linear(like.shape[0], size, device=like.device, dtype=like.dtype))


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_DICT = "the section «A head by name» in this chapter"
_LATER = "the section «A head that comes later» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "plain_dict",
        PlainDict,
        "parameters()",
        "the heads are kept in a plain dict",
        "Count the parameters by hand and by `named_parameters()`. Which layers did the optimizer never hear of?",
        _DICT,
    ),
    _misconception(
        "heads_as_attributes",
        HeadsAsAttributes,
        "parameters()",
        "every head is an attribute with a name of its own making",
        "Under which keys are your heads saved, and which keys does the card ask for?",
        _CARD,
    ),
    _misconception(
        "one_head_for_all",
        OneHeadForAll,
        "parameters()",
        "all names lead to one and the same layer",
        "How many `nn.Linear` objects does the line that fills your dict make?",
        _DICT,
    ),
    _misconception(
        "no_activation",
        NoActivation,
        "output for task 1",
        "the ReLU after the backbone is missing",
        "What are two linear layers in a row, if nothing bends between them?",
        _CARD,
    ),
    _misconception(
        "activation_last",
        ActivationLast,
        "output for task 1",
        "the ReLU stands after the head instead of before it",
        "Can your model ever predict a negative number? Where does the card put the ReLU?",
        _CARD,
    ),
    _misconception(
        "backbone_detached",
        BackboneDetached,
        "gradients after a loss on task 1",
        "the features are cut off, so that the backbone never learns",
        "After backward, which of your parameters have a gradient? Which call stopped it on its way?",
        "chapter 5, on who builds the graph",
    ),
    _misconception(
        "first_head_instead",
        FirstHeadInstead,
        "a task that is not there",
        "an unknown task is answered by the first head",
        "Somebody misspells a task. Would you rather have an error, or numbers that mean something else?",
        _DICT,
    ),
    _misconception(
        "all_heads_run",
        AllHeadsRun,
        "heads that ran for task 1",
        "every head runs and one result is kept",
        "With a hundred tasks, how many heads compute for one answer of yours?",
        _CARD,
    ),
    _misconception(
        "new_head_elsewhere",
        NewHeadElsewhere,
        "dtypes after add_task",
        "a head added later has the default dtype and device instead of the model's",
        "The model was converted before the head came. Who converts the head?",
        _LATER,
    ),
    _misconception(
        "heads_made_anew",
        HeadsMadeAnew,
        "parameters that are the same objects as before",
        "adding a head builds all heads again",
        "Two heads were trained for a week. Are they still the same objects after the third one came?",
        _LATER,
    ),
    _misconception(
        "taken_name_overwritten",
        TakenNameOverwritten,
        "add_task with a name that is taken",
        "a head with the same name is overwritten without a word",
        "Somebody adds a task under a name that is taken. Where is the trained head afterwards?",
        _LATER,
    ),
    _misconception(
        "numbered_heads",
        NumberedHeads,
        "parameters()",
        "the heads are kept by number, and the names beside them",
        "Load a file into a model whose tasks were listed in another order. Which head gets whose weights?",
        _DICT,
    ),
)
