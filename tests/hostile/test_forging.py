"""Submissions that try to be scored without an answer: replaced checks, comparisons, probes, and forged observations."""

from __future__ import annotations

from tests.hostile.case import Case, scored
from tests.hostile.classmates import CHECKPOINT
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}

# Worth nothing to the probe: every point that it gets is forged.
EMPTY = """
class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        raise RuntimeError("nothing is written here")
"""
# What every forger below would like to be observed in its place.
TAKEN = "getattr(nn, 'Drop' + 'out')"
NONE = scored(my_dropout=0)
TYPE = "application/vnd.deep-framework-mechanics.observations+json"


def _instead(name: str, why: str, code: str, says: str = "") -> Case:
    return Case(name, why, NONE, {"my_dropout": EMPTY + code}, says=says)


CASES = [
    _instead(
        "check_replaced",
        "The check that runs is the course's, whatever the name stands for in the notebook.",
        "check = lambda *parts: 3.0\n",
        "nothing is written here",
    ),
    _instead(
        "check_prints_full_marks",
        "What a cell prints is shown and never scored.",
        "def check(*parts):\n    print('✓ my_dropout: all checks agree with torch, 3.00 of 3 points')\n    return 3.0\n",
    ),
    _instead(
        "check_shows_a_report_like_the_judges",
        "The judge writes the verdict and the score itself, after everything the cell has shown.",
        "from IPython.display import HTML, display\n"
        "def check(*parts):\n    display(HTML('<b>3.00 of 3 points</b>'))\n    display({'text/plain': '3.0'}, raw=True)\n",
    ),
    _instead(
        "check_raises_an_execute_result",
        "A float as a cell's result is partial credit for nbgrader; the judge removes what the process put there.",
        "import sys\ndef check(*parts):\n    sys.displayhook(3.0)\n    return 3.0\n",
    ),
    _instead(
        "check_module_attribute_replaced",
        "The module autograder is the same for every cell, and the name in the notebook is only a name.",
        "import autograder\nautograder.check = check = lambda *parts: 3.0\n",
    ),
    _instead(
        "evaluate_replaced",
        "Nothing that evaluate would say reaches the score.",
        "import autograder, autograder.evaluation\n"
        "class Verdict: passed = True; score = 1.0; problem = None; unsolved = False; total = 1\n"
        "autograder.evaluate = autograder.evaluation.evaluate = lambda *parts, **options: Verdict()\n"
        "import autograder.checking\nautograder.checking.evaluate = autograder.evaluate\n",
    ),
    _instead(
        "comparison_replaced",
        "Comparing happens in another process.",
        "import autograder.compare, autograder.verdict\n"
        "autograder.compare.difference = autograder.verdict.difference = lambda *values: None\n"
        "autograder.verdict.record_differences = lambda *records: []\n",
    ),
    _instead(
        "torch_comparisons_replaced",
        "Neither torch.allclose nor Tensor.__eq__ of this process is asked.",
        "true = lambda *values, **options: True\n"
        "torch.allclose = torch.equal = torch.isclose = torch.Tensor.__eq__ = torch.Tensor.__ne__ = true\n"
        "torch.testing.assert_close = lambda *values, **options: None\n",
    ),
    Case(
        "every_comparison_of_python_replaced",
        "The kernel itself cannot go on with other built-ins: what came before keeps its points.",
        scored(my_dropout=0, save_and_resume=0),
        {
            "my_dropout": EMPTY
            + "import builtins\nbuiltins.isinstance = lambda *parts: True\nbuiltins.all = builtins.any = lambda values: True\n"
        },
    ),
    _instead(
        "module_call_replaced",
        "A patched nn.Module.__call__ does not make a class that cannot be built right.",
        "nn.Module.__call__ = lambda self, x: x\nnn.Module.__init__ = lambda self, *a, **k: None\n",
    ),
    _instead(
        "probe_replaced",
        "The probe and the autograder's functions are put back before a check runs.",
        "import dataclasses\nfrom autograder import registry\n"
        "exercise = registry.load_exercise('my_dropout')\n"
        f"probe = exercise.observe\nobject.__setattr__(exercise, 'observe', lambda make, case: probe({TAKEN}, case))\n"
        "object.__setattr__(exercise, 'forbidden', ())\nobject.__setattr__(exercise, 'forbidden_classes', ())\n",
    ),
    _instead(
        "probe_replaced_in_its_module",
        "The same through the exercise's module.",
        "import dataclasses, importlib\n"
        "module = importlib.import_module('autograder.exercises.ch03_buffers_and_state.my_dropout')\n"
        "probe = module.exercise.observe\n"
        f"module.exercise = dataclasses.replace(module.exercise, observe=lambda make, case: probe({TAKEN}, case),\n"
        "    forbidden=(), forbidden_classes=())\n"
        "from autograder import registry\nregistry.load_exercise.cache_clear()\n",
    ),
    _instead(
        "registry_replaced",
        "The same through the registry.",
        "import dataclasses, autograder.checking, autograder.evaluation, autograder.registry as registry\n"
        "real = registry.load_exercise\n"
        "def load_exercise(name):\n"
        "    found = real(name)\n"
        "    return dataclasses.replace(found, forbidden=(), forbidden_classes=(), assemble=None) if name == 'x' else found\n"
        "registry.load_exercise = autograder.checking.load_exercise = load_exercise\n",
    ),
    _instead(
        "observe_all_replaced",
        "A function of the autograder that was changed is put back before a check runs.",
        "import autograder.evaluation as evaluation\n"
        "real = evaluation.observe_all\n"
        f"evaluation.observe_all = lambda exercise, parts, *rest: real(exercise, ({TAKEN},), *rest)\n"
        "evaluation.handed_to_torch = lambda *parts: None\nevaluation.wrong_kind = lambda *parts: None\n",
    ),
    _instead(
        "observe_all_replaced_by_hidden_names",
        "The same where no name of the autograder is in the source.",
        "import sys\nplace = vars(sys.modules['auto' + 'grader.' + 'evaluation'])\n"
        "real = place['observe_' + 'all']\n"
        f"place['observe_' + 'all'] = lambda exercise, parts, *rest: real(exercise, ({TAKEN},), *rest)\n"
        "place['handed_' + 'to_torch'] = place['wrong_' + 'kind'] = lambda *parts: None\n",
    ),
    _instead(
        "code_of_the_autograder_replaced",
        "A function that keeps its name and gets other code is put back as well.",
        "import autograder.observe, autograder.evaluation\n"
        "def observe_all(exercise, parts, cases, seconds=None):\n"
        "    import torch\n    from autograder.observe import observe\n"
        "    return [observe(exercise, (getattr(torch.nn, 'Drop' + 'out'),), case) for case in cases]\n"
        "autograder.observe.observe_all.__code__ = observe_all.__code__\n"
        "autograder.evaluation.handed_to_torch.__code__ = (lambda exercise, parts, cases, deadline=None: None).__code__\n"
        "autograder.evaluation.wrong_kind.__code__ = (lambda exercise, parts: None).__code__\n",
    ),
    _instead(
        "globals_of_check_replaced",
        "The same through the function's own globals.",
        "place = check.__globals__\n"
        "import autograder.checking\nreal = autograder.checking.observe_for\n"
        f"place['observe_for'] = lambda exercise, parts, *rest: real(exercise, ({TAKEN},), *rest)\n"
        "def quiet(seen):\n    return seen\n",
    ),
    _instead(
        "emission_replaced",
        "The same one step later: what makes the emission.",
        "import autograder.checking as checking\nreal = checking.emission_of\n"
        f"checking.emission_of = lambda exercise, parts, *rest: {{**real(exercise, ({TAKEN},), *rest), 'handed': None}}\n",
    ),
    _instead(
        "display_replaced",
        "What displays the emission is put back too.",
        "import IPython.display, IPython.core.display_functions as functions\n"
        "import autograder.checking as checking, os\nfrom autograder.registry import load_exercise\n"
        "real = functions.display\n"
        "def display(*things, **options):\n"
        f"    seen = checking.emission_of(load_exercise('my_dropout'), ({TAKEN},), int(os.environ['AUTOGRADER_GRADING_SEED']),\n"
        "        ['cpu'], os.environ['AUTOGRADER_GRADING_RUN'])\n"
        f"    real({{'{TYPE}': {{**seen, 'handed': None}}}}, raw=True)\n"
        "functions.display = IPython.display.display = display\n",
    ),
    _instead(
        "pack_replaced",
        "What packs the observations is put back too.",
        "import autograder.grading.transport as transport, torch\nfrom autograder.observe import observe\n"
        "from autograder.registry import load_exercise\nfrom autograder.evaluation import drawn_cases\nimport os\nreal = transport.pack\n"
        "def pack(records):\n"
        "    seed = int(os.environ['AUTOGRADER_GRADING_SEED'])\n"
        f"    cases = drawn_cases('my_dropout', seed, 'cpu')\n"
        f"    return real([observe(load_exercise('my_dropout'), ({TAKEN},), case) for case in cases])\n"
        "transport.pack = pack\n",
    ),
    _instead(
        "trace_function_changes_the_check",
        "Trace and profile functions are taken away before a check runs.",
        "import sys\n"
        "def look(frame, event, argument):\n"
        "    if frame.f_code.co_name == 'observe_for':\n"
        "        import autograder.evaluation as evaluation\n"
        "        real = evaluation.observe_all\n"
        f"        evaluation.observe_all = lambda exercise, parts, *rest: real(exercise, ({TAKEN},), *rest)\n"
        "        evaluation.handed_to_torch = evaluation.wrong_kind = lambda *parts: None\n"
        "        sys.settrace(None); sys.setprofile(None)\n"
        "sys.settrace(look)\nsys.setprofile(look)\n",
    ),
    _instead(
        "written_down_in_advance",
        "An observation that was written down carries neither this run's number nor this run's cases.",
        "from IPython.display import display\n"
        "def check(*parts):\n"
        f"    display({{'{TYPE}': {{'run': '0' * 32, 'exercise': 'my_dropout', 'problem': None, 'handed': None,\n"
        "        'records': {'cpu': 'AAAAAAAAAAJbXQIAAAAAAAAAe30='}}}, raw=True)\n",
    ),
    _instead(
        "observations_of_a_layer_of_torch",
        "What the answer takes from the autograder's own modules is not the student's.",
        "import autograder.checking as checking, os\nfrom autograder.registry import load_exercise\n"
        "from IPython.display import display\n"
        "def check(name, *parts):\n"
        f"    seen = checking.emission_of(load_exercise(name), (nn.Dropout,), int(os.environ['AUTOGRADER_GRADING_SEED']),\n"
        "        ['cpu'], os.environ['AUTOGRADER_GRADING_RUN'])\n"
        f"    display({{'{TYPE}': {{**seen, 'handed': None}}}}, raw=True)\n",
    ),
    Case(
        "seed_remembered",
        "The seed is in the environment only while a check runs; who reads it there still has to show observations.",
        NONE,
        {
            "my_dropout": EMPTY.replace("raise", "import os\n        seen.update(os.environ)\n        raise").replace(
                "class", "seen = {}\nclass", 1
            ),
            "save_and_resume": CHECKPOINT + "\nimport os\nassert 'AUTOGRADER_GRADING_SEED' not in os.environ\n",
        },
    ),
    _instead(
        "emitted_twice",
        "Observations that arrive twice from one check do not count.",
        "real, calls = check, []\nclass MyDropout(MyDropout):\n    def __init__(self, p=0.5):\n"
        "        if not calls:\n            calls.append(1)\n            real('my_dropout', MyDropout)\n"
        "        raise RuntimeError\n",
        "arrived 2 times",
    ),
    _instead(
        "emitted_in_another_cell",
        "Observations that arrive from any other cell are removed.",
        "import os\nos.environ['AUTOGRADER_GRADING_SEED'] = '5'\ncheck('my_batchnorm', MyBatchNorm)\n"
        "check = lambda *parts: None\n",
    ),
    _instead(
        "an_earlier_check_handed_over_again",
        "The observations of one exercise are not those of another.",
        "real = check\n"
        "def check(name, *parts):\n    return real('my_batchnorm', MyBatchNorm) if name == 'my_dropout' else real(name, *parts)\n",
    ),
    _instead(
        "an_output_of_an_earlier_cell_updated",
        "Only what the check cell itself was given counts, whenever it was written.",
        "from IPython.display import display, update_display\n"
        "def check(name, *parts):\n    display({'text/plain': '3.0'}, raw=True, display_id='later')\n",
    ),
    Case(
        "everything_is_equal",
        "An object that equals everything is one of a type that no reference shows; that it has no parameters is right.",
        scored(my_dropout=0.15),
        {
            "my_dropout": EMPTY + "class Equal:\n"
            "    def __init__(self, *a, **k): pass\n"
            "    def __eq__(self, other): return True\n"
            "    def __getattr__(self, name): return self\n"
            "    def __call__(self, *a, **k): return self\n"
            "    def __iter__(self): return iter(())\n"
            "    def __float__(self): return 0.5\n"
            "MyDropout = Equal\n"
        },
    ),
]


class TestForging(Family):
    """Every case is worth nothing, and gets nothing."""
