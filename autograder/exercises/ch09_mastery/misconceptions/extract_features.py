"""Extractors that read the wrong values or leave something behind. Each gets one decision wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Extractor:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    careful = True  # what is put back is put back after an error, too

    def __init__(self, model: nn.Module, path: str) -> None:
        self.model = model
        self.kept: list[torch.Tensor] = []
        self.layer = model.get_submodule(path)
        self.modes = {part: part.training for part in model.modules()}
        self.handle = self.layer.register_forward_hook(self.keep)

    def keep(self, module: nn.Module, args: tuple, output: Any) -> None:
        self.kept.append(self.copy(output[0] if isinstance(output, tuple) else output))

    def copy(self, output: Any) -> torch.Tensor:
        return output.detach().clone()

    def prepare(self) -> None:
        self.model.eval()

    def surroundings(self) -> AbstractContextManager:
        return torch.no_grad()

    def remove_hook(self) -> None:
        self.handle.remove()

    def restore_modes(self) -> None:
        for part, training in self.modes.items():
            part.training = training

    def result(self) -> torch.Tensor:
        return torch.cat(self.kept)

    def run(self, batches: Any) -> torch.Tensor:
        try:
            self.prepare()
            with self.surroundings():
                for batch in batches:
                    self.model(batch)
        except BaseException:
            self.after_error()
            raise
        self.remove_hook()
        self.restore_modes()
        return self.result()

    def after_error(self) -> None:
        self.remove_hook()
        self.restore_modes()


class InTrainingMode(_Extractor):
    def prepare(self) -> None:
        pass


class StaysInEval(_Extractor):
    def restore_modes(self) -> None:
        pass


class AllInTraining(_Extractor):
    def restore_modes(self) -> None:
        self.model.train()


class RootsModeForAll(_Extractor):
    def restore_modes(self) -> None:
        self.model.train(self.modes[self.model])

    def after_error(self) -> None:
        self.remove_hook()


class HookStays(_Extractor):
    def remove_hook(self) -> None:
        pass


class NothingAfterAnError(_Extractor):
    def after_error(self) -> None:
        pass


class AliasOfTheOutput(_Extractor):
    def copy(self, output: Any) -> torch.Tensor:
        return output.detach()


class LastBatchOnly(_Extractor):
    def result(self) -> torch.Tensor:
        return self.kept[-1]


class WithItsGraph(_Extractor):
    def copy(self, output: Any) -> torch.Tensor:
        return output.clone()

    def surroundings(self) -> AbstractContextManager:
        return torch.enable_grad()


class TupleForgotten(_Extractor):
    def keep(self, module: nn.Module, args: tuple, output: Any) -> None:
        self.kept.append(self.copy(output))


class InInferenceMode(_Extractor):
    def run(self, batches: Any) -> torch.Tensor:
        with torch.inference_mode():
            return super().run(batches)


def _function(kind: type[_Extractor]) -> Callable:
    def extract_features(model: nn.Module, path: str, batches: Any) -> torch.Tensor:
        return kind(model, path).run(batches)

    extract_features.__name__ = kind.__name__
    return extract_features


def _misconception(kind: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_function(kind),))


_MODES = "chapter 3, «train() and eval()»"
_SECTION = "the section «Features that leave no trace» in this chapter"

misconceptions = (
    _misconception(
        InTrainingMode,
        "extracted_in_training_mode",
        "features",
        "the model is run in the mode it happens to be in",
        "Extract the same rows twice and compare. Which two kinds of layer give another answer each time?",
        _MODES,
    ),
    _misconception(
        StaysInEval,
        "model_left_in_eval",
        "modes afterwards",
        "the model stays in eval mode",
        "Somebody goes on training after your call. In which mode are the Dropout layers then?",
        _MODES,
    ),
    _misconception(
        AllInTraining,
        "everything_put_in_training",
        "modes afterwards",
        "train() is called at the end, whatever was before",
        "A frozen BatchNorm was in eval mode before your call. In which mode is it afterwards?",
        _MODES,
    ),
    _misconception(
        RootsModeForAll,
        "one_mode_for_the_whole_model",
        "modes afterwards",
        "the mode of the root is remembered and given to every part",
        "How many flags named `training` does this model have, and how many of them did you remember?",
        _MODES,
    ),
    _misconception(
        HookStays,
        "hook_left_on_the_layer",
        "hooks left on the model",
        "the hook is never removed",
        "After a hundred calls of your function, how many hooks run at each forward, and what do they keep alive?",
        "chapter 4, «Handles»",
    ),
    _misconception(
        NothingAfterAnError,
        "nothing_put_back_after_an_error",
        "hooks left after the error",
        "an error leaves hook and modes behind",
        "Which of your lines run when the second batch raises?",
        _SECTION,
    ),
    _misconception(
        AliasOfTheOutput,
        "alias_of_the_output",
        "features",
        "detach() shares memory with a tensor that the next layer writes over",
        "Are there negative numbers in your features? The layer returns some. Who wrote over them after your hook ran?",
        "chapter 4, «What a hook should keep»",
    ),
    _misconception(
        LastBatchOnly,
        "last_batch_only",
        "features",
        "each batch overwrites the one before",
        "How many rows went in, and how many came out?",
        _SECTION,
    ),
    _misconception(
        WithItsGraph,
        "features_with_their_graph",
        "features ask for a gradient",
        "each feature drags its graph along",
        "Look at `grad_fn` of your result. What does it keep in memory, for how many batches?",
        _SECTION,
    ),
    _misconception(
        TupleForgotten,
        "output_taken_for_a_tensor",
        "features",
        "a layer that returns a tuple breaks the hook",
        "What does `nn.GRU` return, and what did your hook call on it?",
        "chapter 4, «What a hook should keep»",
    ),
    _misconception(
        InInferenceMode,
        "features_of_inference_mode",
        "a head can be trained on the features",
        "the features are inference tensors, which no later training may use",
        "Train a small layer on your features. What does torch say, and which of its two modes without gradients is "
        "meant for tensors that are used again?",
        "chapter 3, «Updating a buffer»",
    ),
)
