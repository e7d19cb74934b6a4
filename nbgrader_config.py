"""nbgrader for this course: what each folder is called, and which steps are ours."""

from importlib.util import find_spec
from pathlib import Path

from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ComputeChecksums,
    IncludeHeaderFooter,
    LockCells,
    SaveCells,
)

c = get_config()  # noqa: F821 - given by traitlets when it loads this file

c.CourseDirectory.course_id = "deep_framework_mechanics"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.db_url = "sqlite:///gradebook.db"
# The text source of a chapter holds its solutions: it must never be copied to students. The pattern names those
# files alone, so that a student's own helper.py beside a notebook still travels.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    ".pytest_cache",
    "feedback",
    "ch[0-9][0-9]_*.py",
    "*.new",
    "grading_seed.txt",
]

# From the exchange, ordinary files alone, and only from folders of the student whose name they bear.
c.ExchangeFactory.collect = "autograder.instructor.collecting.CollectOwnFiles"

c.GenerateAssignment.preprocessors = [
    IncludeHeaderFooter,
    LockCells,
    "autograder.authoring.stubs.ClearSolutionsByName",
    ClearOutput,
    CheckCellMetadata,
    ComputeChecksums,
    SaveCells,
    ClearHiddenTests,
    ClearMarkScheme,
    ComputeChecksums,
    CheckCellMetadata,
]

c.Autograde.sanitize_preprocessors = [
    ClearOutput,
    "autograder.grading.assignment.DropStrayMarks",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "autograder.grading.assignment.RestoreCells",
    CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    "autograder.grading.execute.ExecuteForGrading",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# A deleted check cell comes back empty-handed instead of staying without a score for ever.
c.OverwriteCells.add_missing_cells = True
c.ExecuteForGrading.timeout = 60

c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.grading.feedback.VerdictsFirst",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
# Ours come first: with them, neither formgrader nor a feedback page asks the network for MathJax.
c.HTMLExporter.extra_template_basedirs = [
    str(Path(find_spec(package).origin).parent / folder / "templates")
    for package, folder in [("autograder", "grading"), ("nbgrader", "server_extensions/formgrader")]
]
