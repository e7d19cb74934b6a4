"""Files as they really arrive: conflicts, other encodings, other formats, other chapters, and honest mistakes."""

from __future__ import annotations

import base64
import io
import json
import random
import zipfile
from collections.abc import Callable

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import NOTHING, Case, GradedClass, marked, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}
_NOT_JSON = "it is not a notebook: its text is not JSON"


def _file(name: str, why: str, file: Callable[[str], bytes], scores: dict | None = None) -> Case:
    return Case(name, why, scored() if scores is None else scores, file=file)


def _reported(name: str, why: str, file: Callable[[str], bytes], says: str) -> Case:
    return Case(name, why, None, file=file, says=says)


def _written(name: str, why: str, source: str, scores: dict, says: str = "") -> Case:
    return Case(name, why, scores, {"my_dropout": source}, says=says)


def _conflict(text: str) -> bytes:
    lines = text.splitlines()
    middle = len(lines) // 2
    marks = ["<<<<<<< HEAD", lines[middle], "=======", lines[middle], ">>>>>>> origin/main"]
    return "\n".join([*lines[:middle], *marks, *lines[middle + 1 :]]).encode()


def _version_3(text: str) -> bytes:
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        cell.pop("id", None)
    return nbformat.v3.writes_json(nbformat.convert(notebook, 3)).encode()


def _with_pictures(notebook: NotebookNode) -> None:
    chance = random.Random(3)
    for number in range(16):
        picture = base64.b64encode(chance.randbytes(3_800_000)).decode()
        cell = notebook.cells[0] if number % 2 else marked(notebook, "my_batchnorm")
        cell.outputs.append(new_output("display_data", data={"image/png": picture, "text/plain": "<Figure>"}))


def _attached(notebook: NotebookNode) -> None:
    picture = base64.b64encode(bytes(1_000_000)).decode()
    cell = new_markdown_cell("![me](attachment:me.png)", attachments={"me.png": {"image/png": picture}})
    notebook.cells.insert(0, cell)


def _other_chapter(text: str) -> bytes:
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["grade_id"] = f"other_{cell.metadata.nbgrader['grade_id']}"
            cell.source = cell.source.replace("My", "Other").replace("def save", "def other_save")
    return nbformat.writes(notebook).encode()


def _changed_json(change: Callable[[dict], object]) -> Callable[[str], bytes]:
    def file(text: str) -> bytes:
        data = json.loads(text)
        change(data)
        return json.dumps(data).encode()

    return file


def _zipped(text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("notebook.ipynb", text)
    return out.getvalue()


def _imports_gone(notebook: NotebookNode) -> None:
    notebook.cells[0].source = "# I tidied up"


def _tabs(source: str) -> str:
    lines = source.splitlines()
    return "\n".join(
        line.replace("        ", "\t", 1) if number % 3 == 1 else line for number, line in enumerate(lines)
    )


CASES = [
    _reported("conflict_marks", "Half of it may be somebody else's: a person has to choose.", _conflict, _NOT_JSON),
    _reported(
        "cut_short", "What is missing cannot be graded.", lambda text: text[: len(text) // 2].encode(), _NOT_JSON
    ),
    _reported("an_empty_file", "There is nothing.", lambda text: b"", _NOT_JSON),
    _reported("only_zeros", "What a full disk leaves of a file.", lambda text: bytes(5000), _NOT_JSON),
    _reported(
        "a_saved_page", "A page to log in, saved as the notebook.", lambda text: b"<!doctype html><html>", _NOT_JSON
    ),
    _reported("python_text", "The code is there, and no cells.", lambda text: b"import torch\nprint(1)\n", _NOT_JSON),
    _reported("a_zip_archive", "An archive is not a notebook.", _zipped, "is not UTF-8"),
    _reported(
        "latin_1",
        "An encoding that nobody names.",
        lambda text: text.replace("torch", "törch", 1).encode("latin-1", "replace"),
        "is not UTF-8",
    ),
    _reported("utf_16", "As a shell on Windows redirects it.", lambda text: text.encode("utf-16"), "is not UTF-8"),
    _file("byte_order_mark", "It is UTF-8 all the same.", lambda text: b"\xef\xbb\xbf" + text.encode()),
    _file(
        "windows_line_ends", "They are white space between values.", lambda text: text.replace("\n", "\r\n").encode()
    ),
    _file("windows_line_ends_in_cells", "Python reads them.", lambda text: text.replace("\\n", "\\r\\n").encode()),
    _file("no_line_ends", "They are not needed.", lambda text: json.dumps(json.loads(text)).encode()),
    _file(
        "sources_as_one_text",
        "The format allows both.",
        _changed_json(lambda data: [cell.update(source="".join(cell["source"])) for cell in data["cells"]]),
    ),
    _file("format_3", "An older format is read as what it says.", _version_3),
    _reported("a_list", "JSON, and no notebook.", lambda text: b"[1, 2, 3]", "no notebook"),
    _reported("a_number", "JSON, and no notebook.", lambda text: b"7", "no notebook"),
    _reported(
        "no_cells",
        "JSON, and no notebook.",
        lambda text: b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
        "no notebook",
    ),
    _reported(
        "cells_that_are_a_text",
        "JSON, and no notebook.",
        _changed_json(lambda data: data.update(cells="x")),
        "no notebook",
    ),
    _reported(
        "a_format_to_come",
        "A format that nobody knows yet.",
        _changed_json(lambda data: data.update(nbformat=9)),
        "cannot be graded",
    ),
    _file(
        "a_minor_version_to_come",
        "It is read as far as it is known.",
        _changed_json(lambda data: data.update(nbformat_minor=99)),
    ),
    _reported(
        "a_tower",
        "Nested so deeply that nobody can read it.",
        lambda text: b'{"cells":' + b"[" * 200_000 + b"]" * 200_000,
        "cannot be graded",
    ),
    _reported(
        "ten_million_values",
        "It would fill the memory of whoever grades.",
        lambda text: b'{"cells": [' + b"[]," * 4_000_000 + b"[]]}",
        "more than 3000000 values",
    ),
    _file(
        "half_a_character",
        "Half of a pair becomes a question mark.",
        _changed_json(lambda data: data["cells"][0]["source"].append("\n# \ud83d")),
    ),
    _file(
        "a_number_that_is_none",
        "NaN in the metadata is no part of what runs.",
        _changed_json(lambda data: data["metadata"].update(score=float("nan"))),
    ),
    _file(
        "fields_of_another_program",
        "They are no part of what runs.",
        _changed_json(
            lambda data: [cell.update(vscode={"languageId": "python"}, collapsed=True) for cell in data["cells"]]
        ),
    ),
    Case("eighty_megabytes_of_pictures", "Outputs are cleared before anything runs.", scored(), change=_with_pictures),
    Case("a_picture_in_the_text", "It stays where it is.", scored(), change=_attached),
    _file("another_chapters_notebook", "None of this chapter's answers is in it.", _other_chapter, NOTHING),
    _file(
        "another_course",
        "A notebook with none of the cells gets none of the points.",
        lambda text: nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])).encode(),
        NOTHING,
    ),
    _written(
        "print_of_python_2",
        "The cell does not parse: nothing of it is there.",
        RIGHT_DROPOUT + "\nprint 'done'\n",
        scored(my_dropout=0),
        "SyntaxError",
    ),
    _written("tabs_and_spaces", "The same.", _tabs(RIGHT_DROPOUT), scored(my_dropout=0), "Error"),
    _written(
        "a_cell_that_is_markdown", "The same.", "# My answer\nI think that dropout is *hard*.", scored(my_dropout=0)
    ),
    _written(
        "an_import_that_is_missing",
        "The class is there, and fails where it needs the name.",
        RIGHT_DROPOUT.replace("torch.rand_like", "np.random.rand_like"),
        scored(my_dropout=0.94),
        "NameError",
    ),
    _written(
        "a_package_that_is_missing",
        "What came before it in the cell is there.",
        RIGHT_DROPOUT + "\nimport seaborn_that_nobody_has\n",
        scored(),
        "ModuleNotFoundError",
    ),
    _written(
        "widgets_of_matplotlib",
        "A backend that is not there costs its line.",
        "%matplotlib widget\n" + RIGHT_DROPOUT,
        scored(),
    ),
    _written(
        "figures_asked_for",
        "The line that many notebooks begin with, and a figure.",
        f"%matplotlib inline\nimport matplotlib.pyplot as plt\n{RIGHT_DROPOUT}\nplt.plot([1, 2])",
        scored(),
        "image/png",
    ),
    _written(
        "figures_not_asked_for",
        "The same without the line.",
        f"import matplotlib.pyplot as plt\n{RIGHT_DROPOUT}\nplt.plot([1, 2])",
        scored(),
        "image/png",
    ),
    _written(
        "the_wrong_name",
        "The check asks for MyDropout.",
        RIGHT_DROPOUT.replace("MyDropout", "Mydropout"),
        scored(my_dropout=0),
        "NameError",
    ),
    _written(
        "an_instance",
        "The check asks for the class.",
        RIGHT_DROPOUT + "\nMyDropout = MyDropout(0.5)\n",
        scored(my_dropout=0),
        "the check builds its own",
    ),
    _written("a_name_taken", "A variable called check is only a variable.", RIGHT_DROPOUT + "\ncheck = 3\n", scored()),
    Case(
        "the_first_cell_emptied",
        "Without the imports no class can be made; the checkpoint's functions fail as well.",
        NOTHING,
        change=_imports_gone,
    ),
]


class TestBrokenFiles(Family):
    """What can be graded is graded in full; what cannot is named with one sentence."""

    def test_the_sentences_are_one_line_each(self, graded: GradedClass) -> None:
        """Short enough for a list."""
        sentences = [outcome["sentence"] for outcome in graded.outcomes if outcome["state"] == "failed"]
        assert sentences and all("\n" not in text and len(text) < 400 and text.endswith(".") for text in sentences)
