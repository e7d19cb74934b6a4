"""Nine honest students, right and wrong in different ways, who sit beside every hostile submission."""

from __future__ import annotations

from tests.grading.answers import (
    BIASED_BATCHNORM,
    BROKEN_DROPOUT,
    IMPORT_RANDOM,
    RAISING_CELL,
    RIGHT_BATCHNORM,
    RIGHT_CHECKPOINT,
    RIGHT_DROPOUT,
    UNSCALED_DROPOUT,
)

EXERCISES = ("my_batchnorm", "my_dropout", "save_and_resume")
CHECKPOINT = IMPORT_RANDOM + RIGHT_CHECKPOINT
RIGHT = {"my_batchnorm": RIGHT_BATCHNORM, "my_dropout": RIGHT_DROPOUT, "save_and_resume": CHECKPOINT}

_PLAIN_TENSORS = RIGHT_BATCHNORM
for _name in ("running_mean", "running_var", "num_batches_tracked"):
    _PLAIN_TENSORS = _PLAIN_TENSORS.replace(f'self.register_buffer("{_name}", ', f"self.{_name} = (")
_ALWAYS_ON = RIGHT_DROPOUT.replace("not self.training or ", "")
_IN_THE_GRAPH = RIGHT_BATCHNORM.replace("with torch.no_grad():", "if True:")
_NO_SCHEDULER = CHECKPOINT.replace('        "scheduler": scheduler.state_dict(),\n', "").replace(
    '    scheduler.load_state_dict(checkpoint["scheduler"])\n', ""
)

CLASSMATES: dict[str, dict[str, str]] = {
    "honest_ada": RIGHT,
    "honest_ben": {},
    "honest_cleo": {**RIGHT, "my_batchnorm": BIASED_BATCHNORM},
    "honest_dan": {**RIGHT, "my_dropout": UNSCALED_DROPOUT},
    "honest_eva": {**RIGHT, "my_batchnorm": RAISING_CELL, "my_dropout": BROKEN_DROPOUT},
    "honest_fay": {**RIGHT, "my_batchnorm": _PLAIN_TENSORS},
    "honest_gus": {**RIGHT, "my_dropout": _ALWAYS_ON},
    "honest_hei": {**RIGHT, "my_batchnorm": _IN_THE_GRAPH},
    "honest_ida": {**RIGHT, "save_and_resume": _NO_SCHEDULER},
}
