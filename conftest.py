"""For every test and every notebook that is run: the reader's own progress is neither read nor written."""

from __future__ import annotations

import os
import tempfile

_FOLDER = tempfile.TemporaryDirectory(prefix="progress-")
os.environ["DEEP_FRAMEWORK_MECHANICS_PROGRESS"] = os.path.join(_FOLDER.name, "progress.jsonl")
os.environ.pop("AUTOGRADER_GRADING_SEED", None)
