"""For every test and every notebook that is run: the reader's own progress is neither read nor written."""

from __future__ import annotations

import os

os.environ["DEEP_FRAMEWORK_MECHANICS_PROGRESS"] = "nowhere"
os.environ.pop("AUTOGRADER_GRADING_SEED", None)
