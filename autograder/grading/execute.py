"""nbgrader's execution step, with the grading seed given to the kernel and to nobody else."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import Execute
from traitlets import Unicode

from autograder.checking import GRADING_SEED_VARIABLE


class ExecuteForGrading(Execute):
    """Execute a submission so that ``check`` draws its cases from the grading seed and returns points.

    The seed reaches the kernel by its environment: JupyterLab's kernels, which read the same configuration file,
    never see it.
    """

    grading_seed = Unicode(
        "", help="Any text. Empty: a seed of this course's own, kept in the file grading_seed.txt."
    ).tag(config=True)

    def setup_kernel(self, **kwargs: Any) -> Any:
        """Start the kernel with the grading seed in its environment."""
        seed = self.grading_seed or course_seed(Path.cwd())
        kwargs.setdefault("env", {**os.environ, GRADING_SEED_VARIABLE: seed, "MPLBACKEND": "agg"})
        return super().setup_kernel(**kwargs)


def course_seed(folder: Path) -> str:
    """Return the secret of the course in ``folder``, made once and readable by its owner only."""
    file = folder / "grading_seed.txt"
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text(encoding="utf-8").strip()
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(seed := secrets.token_hex(16))
    return seed
