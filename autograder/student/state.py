"""The state of the course in a terminal: each chapter's notebook is run as it is saved, and its checks are read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from autograder.authoring.build import chapters, student_file
from autograder.student.preflight import unsaved

SECONDS_PER_CELL = 120
WATCH_EVERY = 1.0


def check_chapter(root: Path, chapter: str) -> list[tuple[str, str, str]]:
    """Run a chapter's notebook and return (exercise, sign, sentence) for each check; the file is not changed.

    The signs: ✓ passed, ✗ differs, · still to be written, ! something else. Known results of unchanged code are taken
    from ``.course/state.json``.
    """
    file = student_file(root, chapter)
    try:
        notebook = nbformat.read(file, as_version=4)
    except OSError as error:
        return [(chapter, "!", f"{file.name} cannot be read: {error.strerror}")]
    except Exception as error:
        return [(chapter, "!", f"{file.name} is no valid notebook: {str(error).splitlines()[0][:100]}")]
    kept, key = _kept(root), _fingerprint(notebook)
    if kept.get(chapter, {}).get("key") == key:
        return [tuple(row) for row in kept[chapter]["rows"]]
    rows = _run(notebook, file)
    kept[chapter] = {"key": key, "rows": rows}
    _keep(root, kept)
    return rows


def _run(notebook: Any, file: Path) -> list[tuple[str, str, str]]:
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        allow_errors=True,
        interrupt_on_timeout=True,
        resources={"metadata": {"path": str(file.parent)}},
    )
    try:
        client.execute(env={**os.environ, "MPLBACKEND": "agg"}, stderr=subprocess.DEVNULL)
    except Exception as error:
        return [(file.stem, "!", f"the kernel stopped: {str(error).strip().splitlines()[-1][:100]}")]
    return [row for cell in notebook.cells if (row := _row(cell)) is not None]


def _row(cell: Any) -> tuple[str, str, str] | None:
    settings = cell.metadata.get("nbgrader", {})
    if not settings.get("grade"):
        return None
    name = settings["grade_id"].removesuffix("_check")
    for output in cell.get("outputs", []):
        text = output.get("data", {}).get("text/plain", "")
        if text.startswith("✓"):
            return name, "✓", text.splitlines()[0].removeprefix("✓ ")
        if output.output_type == "error":
            sign = {"NotImplementedError": "·", "NotSolvedYet": "·", "CheckFailed": "✗"}.get(output.ename, "!")
            said = output.evalue.strip().splitlines()[0] if output.evalue.strip() else output.ename
            return name, sign, said if sign != "!" else f"{name}: {output.ename}: {said}"
    return name, "!", f"{name}: its check said nothing"


def _fingerprint(notebook: Any) -> str:
    from importlib.metadata import version

    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps([version("torch"), code]).encode()).hexdigest()


def _kept(root: Path) -> dict[str, Any]:
    try:
        found = json.loads((root / ".course" / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep(root: Path, kept: dict[str, Any]) -> None:
    file = root / ".course" / "state.json"
    try:
        file.parent.mkdir(exist_ok=True)
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(kept), encoding="utf-8")
        os.replace(beside, file)
    except OSError:
        # Without the memory everything is run again next time; nothing is lost.
        return


def report(root: Path, wanted: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of the report, chapter by chapter, as soon as each has run."""
    solved = whole = 0
    for chapter in chapters(root, wanted):
        yield chapter
        rows = check_chapter(root, chapter)
        for _, sign, said in rows:
            solved, whole = solved + (sign == "✓"), whole + 1
            yield f"  {sign} {said}"
        unwritten = [name for name, sign, _ in rows if sign in "·✗"]
        yield from (f"  ! {said}; save it in JupyterLab (Ctrl+S)." for said in _unsaved(root, chapter, unwritten))
    yield f"{solved} of {whole} exercises pass."


def _unsaved(root: Path, chapter: str, names: Sequence[str]) -> list[str]:
    try:
        return unsaved(student_file(root, chapter), names)
    except OSError:
        return []


def watch(root: Path, wanted: Sequence[str], say: Callable[[str], None], rounds: int | None = None) -> None:
    """Check a chapter again whenever its notebook is saved, until interrupted (or for so many looks)."""
    names = chapters(root, wanted)
    seen = {name: _moment(root, name) for name in names}
    say(f"Watching {len(names)} notebooks; save one in JupyterLab to check it. Ctrl+C ends.")
    while rounds is None or rounds > 0:
        rounds = None if rounds is None else rounds - 1
        time.sleep(WATCH_EVERY)
        for name in names:
            moment = _moment(root, name)
            if moment != seen[name]:
                seen[name] = moment
                say(f"{name}, {time.strftime('%H:%M:%S')}")
                for _, sign, said in check_chapter(root, name):
                    say(f"  {sign} {said}")


def _moment(root: Path, chapter: str) -> float | None:
    try:
        return student_file(root, chapter).stat().st_mtime
    except OSError:
        return None
