"""The page that ``make lab`` opens: ten chapters, minutes, what is done and what comes next."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat

from autograder.messages import UsageError
from autograder.student.overview import Chapter, course, next_chapter

NAME = "start_here.ipynb"


def write_start_page(root: Path) -> Path:
    """Write ``notebooks/start_here.ipynb`` as the progress stands now and return its path.

    Raises UsageError when there are no notebooks, or the folder cannot be written in.
    """
    chapters = course(root)
    if not chapters:
        raise UsageError(f"{root / 'notebooks'} holds no chapter. Start from the course's folder, or clone it anew.")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(page_text(chapters), id="chapters")])
    notebook.cells.append(nbformat.v4.new_markdown_cell(HELP, id="help"))
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    )
    file = root / "notebooks" / NAME
    beside = file.with_suffix(".new")
    try:
        nbformat.write(notebook, beside)
        os.replace(beside, file)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written ({error.strerror}); open a chapter in notebooks/ by hand."
        ) from None
    return file


def page_text(chapters: list[Chapter]) -> str:
    """Return the page as Markdown."""
    following = next_chapter(chapters)
    rows = "\n".join(_row(chapter, chapter is following) for chapter in chapters)
    solved, whole = sum(len(c.passed) for c in chapters), sum(len(c.exercises) for c in chapters)
    if following is None:
        where = "You have solved every exercise of the course."
    elif solved == 0:
        where = f"Begin with [{following.title}]({_link(following)})."
    else:
        where = f"{solved} of {whole} exercises are solved. Next: [{following.title}]({_link(following)})."
        if following.passed:
            where += f" There `{following.left[0]}` is waiting."
    return (
        "# Deep Framework Mechanics\n\nWhat `torch.nn.Module` does inside, rebuilt by you.\n\n"
        f"{where}\n\n| | chapter | about | exercises |\n|---|---|---|---|\n{rows}\n"
    )


def _row(chapter: Chapter, following: bool) -> str:
    done = not chapter.left
    sign = "✓ done" if done else "→ next" if following else f"{len(chapter.passed)} of {len(chapter.exercises)}"
    names = ", ".join(f"{'✓ ' if name in chapter.passed else ''}`{name}`" for name in chapter.exercises)
    hours = (
        f"{chapter.minutes // 60} h {chapter.minutes % 60:02d}" if chapter.minutes >= 60 else f"{chapter.minutes} min"
    )
    return f"| {sign} | [{chapter.title}]({_link(chapter)}) | {hours} | {names} |"


def _link(chapter: Chapter) -> str:
    return f"{chapter.folder}/{chapter.folder}.ipynb"


HELP = """\
**How a chapter works.** Read, predict, run. Predictions are kept on this machine only, and you may skip any of them.
An exercise has a card, a cell with a gap, a check and two hints that stay closed until you open them. A check compares
your code with torch and says in words where they part.

| in a terminal | does |
|---|---|
| `make check` | prints the state of the whole course |
| `make watch` | checks a chapter again whenever you save it |
| `make doctor` | says what works here and how to mend what does not |
| `make reset CHAPTER=ch03` | gives you a fresh chapter and keeps your answers beside it |
| `make preflight CHAPTER=ch03` | looks over a chapter before you hand it in |
| `make lab` | opens this page with your progress as it is then |
"""
