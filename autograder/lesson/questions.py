"""Questions and their TOML files: ``autograder/questions/chNN_….toml``, one file a chapter."""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.messages import UsageError

QUESTIONS_FOLDER = Path(__file__).resolve().parent.parent / "questions"
KINDS = ("predict", "quiz", "recall")

_REQUIRED = {"id": str, "kind": str, "about": str, "prompt": str, "answer": int, "option": list}
_OPTIONAL = {"code": str, "after": str}
_TYPE_NAMES = {str: "a text in quotes", int: "a whole number", list: "a list of [[question.option]] tables"}
_CHAPTER = re.compile(r"ch\d\d")


class QuestionFileError(ValueError):
    """A question file cannot be used as it is; the message holds one sentence for each fault."""


@dataclass(frozen=True)
class Option:
    """One possible answer, and what is right or wrong about it (may be empty in a prediction)."""

    text: str
    why: str = ""


@dataclass(frozen=True)
class Question:
    """One question as its file has it; ``answer`` counts from 1."""

    id: str
    kind: str
    about: str
    prompt: str
    options: tuple[Option, ...]
    answer: int
    code: str = ""
    after: str = ""

    @property
    def chapter(self) -> str:
        """The chapter that the question belongs to, such as ``ch03``."""
        return self.id[:4]

    @property
    def right(self) -> Option:
        """The option that is the answer."""
        return self.options[self.answer - 1]


def letter(number: int) -> str:
    """Return the letter that option ``number`` (from 1) is shown under."""
    return chr(ord("A") + number - 1)


def read_file(path: Path) -> tuple[list[Question], list[str]]:
    """Read one question file.

    Arguments: the path of a file whose name starts with its chapter (``ch03_….toml``).
    Returns the questions without a fault and one sentence for each fault, naming file, question and remedy.
    Raises nothing for what the file holds; OSError when it cannot be read.
    """
    now = path.stat()
    questions, faults = _as_it_is(path, now.st_mtime_ns, now.st_size)
    return list(questions), list(faults)


@functools.lru_cache(maxsize=16)
def _as_it_is(path: Path, modified: int, size: int) -> tuple[list[Question], list[str]]:
    """Read a file once for all its questions, and again once it has changed."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        return [], [f"{path.name}: byte {error.start} is not UTF-8; save the file as UTF-8."]
    except tomllib.TOMLDecodeError as error:
        return [], [f"{path.name}: this is not TOML that can be read ({error}); mend that line."]
    strange = [name for name in content if name != "question"]
    faults = [f"{path.name}: there is no table called {name!r}; write [[question]]." for name in strange]
    tables = content.get("question", [])
    if not isinstance(tables, list):
        return [], [*faults, f"{path.name}: [question] is one table; write [[question]] with two brackets."]
    questions: list[Question] = []
    seen: set[str] = set()
    for position, table in enumerate(tables, start=1):
        found = _faults(table, path)
        identifier = table.get("id")
        where = f"{path.name}, question {identifier if isinstance(identifier, str) else f'number {position}'}"
        if isinstance(identifier, str):
            if identifier in seen:
                found.append("this id is used twice; give one of the two another id")
            seen.add(identifier)
        faults.extend(f"{where}: {fault}." for fault in found)
        if not found:
            questions.append(_build(table))
    return questions, faults


def _faults(table: Mapping[str, Any], path: Path) -> list[str]:
    faults = _key_faults(table, _REQUIRED, _OPTIONAL)
    if faults:
        return faults
    chapter = path.name[:4]
    if not table["id"].startswith(f"{chapter}-"):
        faults.append(f"the id must start with this file's chapter; rename it to {chapter}-…")
    if table["kind"] not in KINDS:
        near = difflib.get_close_matches(table["kind"], KINDS, n=1, cutoff=0.5)
        meant = f" (perhaps {near[0]})" if near else ""
        faults.append(f"unknown kind {table['kind']!r}; choose one of {', '.join(KINDS)}{meant}")
    if table.get("after") and table["kind"] != "predict":
        faults.append("`after` belongs to a prediction; remove it, or make the kind predict")
    options = table["option"]
    if len(options) < 2:
        faults.append(f"{len(options)} option is no choice; write at least two [[question.option]] tables")
    if not 1 <= table["answer"] <= len(options):
        faults.append(f"answer = {table['answer']} is out of range; count the {len(options)} options from 1")
    return faults + _option_faults(options, why_is_needed=table["kind"] in ("quiz", "recall"))


def _key_faults(table: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type]) -> list[str]:
    faults = []
    known = {**required, **optional}
    for name in table:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            faults.append(f"unknown key {name!r}; " + (f"write {near[0]!r}" if near else "remove it"))
    for name, kind in known.items():
        if name not in table:
            if name in required:
                faults.append(f"{name!r} is missing; add it as {_TYPE_NAMES[kind]}")
        elif not isinstance(table[name], kind) or isinstance(table[name], bool):
            faults.append(f"{name!r} must be {_TYPE_NAMES[kind]}; it is {table[name]!r}")
        elif name in required and kind is str and not table[name].strip():
            faults.append(f"{name!r} is empty; write it")
    return faults


def _option_faults(options: list[Any], why_is_needed: bool) -> list[str]:
    faults: list[str] = []
    texts: set[str] = set()
    for number, option in enumerate(options, start=1):
        if not isinstance(option, dict):
            faults.append(f"option {letter(number)} is not a table; write it as [[question.option]]")
            continue
        wrong = _key_faults(option, {"text": str}, {"why": str})
        faults.extend(f"option {letter(number)}: {fault}" for fault in wrong)
        if wrong:
            continue
        if option["text"].strip() in texts:
            faults.append(f"option {letter(number)} repeats another option; change its text")
        texts.add(option["text"].strip())
        if why_is_needed and not option.get("why", "").strip():
            faults.append(f"option {letter(number)} has no `why`; write what is right or wrong about it")
    return faults


def _build(table: Mapping[str, Any]) -> Question:
    options = tuple(Option(each["text"].strip(), each.get("why", "").strip()) for each in table["option"])
    return Question(
        id=table["id"],
        kind=table["kind"],
        about=table["about"].strip(),
        prompt=table["prompt"].strip(),
        options=options,
        answer=table["answer"],
        code=table.get("code", "").strip("\n").rstrip(),
        after=table.get("after", "").strip(),
    )


def load_chapter(chapter: str, folder: Path | None = None) -> list[Question]:
    """Return the questions of one chapter in the order of its file.

    Arguments: the chapter, such as ``ch03``, and the folder of the question files.
    Raises UsageError when there is no such file, and QuestionFileError, with one sentence a fault, when the
    file has faults.
    """
    folder = folder or QUESTIONS_FOLDER
    paths = sorted(folder.glob(f"{chapter}_*.toml")) if _CHAPTER.fullmatch(chapter) else []
    if not paths:
        there = ", ".join(chapters(folder)) or "none yet"
        raise UsageError(f"There are no questions for {chapter!r}; the chapters that have some: {there}.")
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise QuestionFileError(f"{chapter} has {len(paths)} question files ({names}); keep one.")
    questions, faults = read_file(paths[0])
    if faults:
        raise QuestionFileError("\n".join(faults))
    return questions


def chapters(folder: Path | None = None) -> list[str]:
    """Return the chapters that have a question file, in order."""
    folder = folder or QUESTIONS_FOLDER
    return sorted({path.name[:4] for path in folder.glob("ch*_*.toml") if _CHAPTER.match(path.name)})


def load_question(identifier: str, folder: Path | None = None) -> Question:
    """Return one question.

    Arguments: its id, such as ``ch03-persistent``, and the folder of the question files.
    Raises UsageError, with the nearest id there is, when nothing has that id; QuestionFileError as
    ``load_chapter`` does.
    """
    if not isinstance(identifier, str):
        raise UsageError(f"A question is named by its id in quotes, such as 'ch03-…', not by {identifier!r}.")
    chapter = identifier[:4]
    if chapter in chapters(folder):
        # Only this chapter's file is read: a fault in another chapter must not stop this notebook.
        for question in load_chapter(chapter, folder):
            if question.id == identifier:
                return question
    paths = (folder or QUESTIONS_FOLDER).glob("ch*_*.toml")
    everything = [question.id for path in sorted(paths) for question in read_file(path)[0]]
    near = difflib.get_close_matches(identifier, everything, n=1, cutoff=0.3)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"No question has the id {identifier!r}.{meant}")
