"""nbgrader's step that takes the solutions out, leaving a stub that names its exercise."""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import ClearSolutions


class ClearSolutionsByName(ClearSolutions):
    """ClearSolutions, but each stub raises NotImplementedError with the exercise's name, so that an unsolved
    exercise is told from a broken one."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Replace the solution regions of one cell. Raises RuntimeError, as nbgrader does, for unbalanced markers."""
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        self.code_stub = {"python": f'raise NotImplementedError("{name}")  # your code instead of this line'}
        return super().preprocess_cell(cell, resources, cell_index)
