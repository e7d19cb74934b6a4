"""Answers that look for the right answer: in the autograder, in memory, in files."""

from __future__ import annotations

from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}

_MODULE = "autograder.exercises.ch03_buffers_and_state.save_and_resume"
_FILE = "ch03_buffers_and_state/save_and_resume.py"


def _taking(name: str, why: str, source: str) -> Case:
    return Case(name, why, scored(save_and_resume=0), {"save_and_resume": source})


CASES = [
    _taking(
        "from_the_registry",
        "The exercise has no reference where students' code runs.",
        "from autograder.registry import load_exercise\n"
        "save_checkpoint, load_checkpoint = load_exercise('save_and_resume').reference",
    ),
    _taking(
        "from_its_module",
        "What only the reference needs has been taken out of the module.",
        f"from {_MODULE} import _reference_load as load_checkpoint, _reference_save as save_checkpoint",
    ),
    _taking(
        "by_hidden_names",
        "The same without a name that could be read.",
        "import sys\nplace = vars(sys.modules['autograder.' + 'exercises.ch03_buffers_and_state.save_and_resume'])\n"
        "save_checkpoint, load_checkpoint = place['_reference_' + 'save'], place['_reference_' + 'load']",
    ),
    _taking(
        "loaded_again",
        "The file cannot be read again.",
        f"import importlib, {_MODULE} as module\nimportlib.reload(module)\n"
        "save_checkpoint, load_checkpoint = module.exercise.reference",
    ),
    _taking(
        "from_its_file",
        "The file cannot be read.",
        "import autograder, pathlib\n"
        f"text = (pathlib.Path(autograder.__file__).parent / 'exercises' / '{_FILE}').read_text()\n"
        "place = {}\nexec(text, place)\nsave_checkpoint, load_checkpoint = place['exercise'].reference",
    ),
    _taking(
        "from_its_cached_bytecode",
        "Nor can what Python compiled of it.",
        "import autograder, marshal, pathlib\n"
        "folder = pathlib.Path(autograder.__file__).parent / 'exercises' / 'ch03_buffers_and_state' / '__pycache__'\n"
        "data = next(folder.glob('save_and_resume.*.pyc')).read_bytes()\nplace = {'__name__': 'x'}\n"
        "exec(marshal.loads(data[16:]), place)\nsave_checkpoint, load_checkpoint = place['exercise'].reference",
    ),
    _taking(
        "its_source",
        "There is no source to be shown.",
        f"import inspect, {_MODULE} as module\nplace = dict(vars(module))\n"
        "exec(inspect.getsource(module), place)\nsave_checkpoint, load_checkpoint = place['exercise'].reference",
    ),
    _taking(
        "from_all_objects",
        "It is in no object of the process.",
        "import gc, types\n"
        "found = {each.__name__: each for each in gc.get_objects() if isinstance(each, types.FunctionType)\n"
        "         and each.__name__ in ('_reference_save', '_reference_load')}\n"
        "save_checkpoint, load_checkpoint = found['_reference_save'], found['_reference_load']",
    ),
    _taking(
        "the_solution_from_the_frames_above",
        "No text of the solution was ever in the memory that a submission inherits.",
        "import sys\n\ndef texts(value, depth=0):\n"
        "    if isinstance(value, str) and 'def load_checkpoint' in value and 'torch.load' in value:\n        yield value\n"
        "    if isinstance(value, dict) and depth < 4:\n        value = list(value.values())\n"
        "    if isinstance(value, (list, tuple)) and depth < 4:\n"
        "        for each in value:\n            yield from texts(each, depth + 1)\n\n"
        "frame, found = sys._getframe().f_back, []\n"
        "while frame:\n"
        "    if 'ipython' not in frame.f_code.co_filename.lower():\n"
        "        found += texts({key: value for key, value in frame.f_locals.items() if key[0] not in '_I'})\n"
        "    frame = frame.f_back\n"
        "exec(found[0])",
    ),
    _taking(
        "the_solution_from_all_texts",
        "The same, looking at everything that Python knows of.",
        "import gc\nmark = 'python_' + 'rng'\n"
        "found = [text for each in gc.get_objects() if isinstance(each, dict) and each is not globals()\n"
        "         for text in list(each.values()) if isinstance(text, str) and mark in text and 'def load_' in text]\n"
        "found = [text for text in found if 'mark = ' not in text]\n"
        "exec(found[0])",
    ),
    _taking(
        "a_wrong_answer_that_is_nearly_right",
        "The wrong answers that diagnose a mistake cannot be read either.",
        "from autograder.registry import load_misconceptions\n"
        "save_checkpoint, load_checkpoint = load_misconceptions('save_and_resume')[0].parts",
    ),
    _taking(
        "the_solution_file",
        "No file of the course is there.",
        "import pathlib\n"
        "found = [p for top in ('/work', '/home', '/root', '/srv', '/opt', '/mnt', '/tmp', '/var', '..', '../..', '../../..')\n"
        "         for p in pathlib.Path(top).glob('**/solutions/ch03*/*.py')]\n"
        "exec(found[0].read_text())",
    ),
    _taking(
        "a_classmates_answer",
        "No other submission is there.",
        "import json, pathlib\n"
        "found = [p for top in ('/tmp', '..', '../..', '../../..', '/home', '/root')\n"
        "         for p in pathlib.Path(top).glob('**/submitted/honest_ada/**/*.ipynb')]\n"
        "for cell in json.loads(found[0].read_text())['cells']:\n"
        "    if 'def save_checkpoint' in ''.join(cell['source']): exec(''.join(cell['source']))",
    ),
    _taking(
        "an_answer_left_by_an_earlier_submission",
        "Nothing that one submission leaves, in files or in memory, is there for the next.",
        "import builtins, glob, pathlib, sys\n"
        "for folder in ('/tmp', '/dev/shm', '/var/tmp', str(pathlib.Path.home())):\n"
        "    try:\n        pathlib.Path(folder, 'left_behind.py').write_text('answer = 1')\n    except OSError:\n        pass\n"
        "if not hasattr(builtins, 'left_behind'):\n    builtins.left_behind = sys.left_behind = torch.left_behind = 1\n"
        "raise SystemExit",
    ),
    _taking(
        "an_answer_left_by_an_earlier_submission_2",
        "The one after it finds nothing.",
        "import builtins, glob, sys\n"
        "assert hasattr(builtins, 'left_behind') or hasattr(torch, 'left_behind') or hasattr(sys, 'left_behind') or glob.glob(\n"
        "    '/tmp/**/left_behind.py', recursive=True) or glob.glob('/dev/shm/**/left_behind.py', recursive=True)\n"
        "print('SOMETHING WAS LEFT')",
    ),
    Case(
        "the_exercises_card_looked_at",
        "Curiosity costs nothing: what surrounds an exercise may be read.",
        scored(),
        {
            "my_dropout": "from autograder.registry import load_exercise\nprint(load_exercise('my_dropout').card.goal)\n"
            + RIGHT_DROPOUT
        },
    ),
    Case(
        "a_check_of_ones_own",
        "Calling check in a cell of one's own works as at home: the public cases are known beforehand.",
        scored(),
        {"my_dropout": RIGHT_DROPOUT + "\n\ncheck('my_dropout', MyDropout)\ncheck('my_batchnorm', MyBatchNorm)\n"},
        says="public checks 15 of 15 agree with torch",
    ),
]


class TestReferences(Family):
    """No right answer is there to be found; looking around otherwise costs nothing."""

    def test_nothing_was_left_behind(self, graded: GradedClass) -> None:
        """Whichever of the two ran first."""
        assert "SOMETHING WAS LEFT\\n" not in graded.text("an_answer_left_by_an_earlier_submission_2")
