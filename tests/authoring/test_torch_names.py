"""Nothing of torch is used before it is taught: each chapter's code keeps to the names introduced so far."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

from autograder.authoring import torch_names
from autograder.authoring.build import source_file
from autograder.authoring.torch_names import names_used, prose
from tests.conftest import ROOT

LISTS = tomllib.loads(Path(torch_names.__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ASSUMED: list[str] = LISTS["assumed"]
INTRODUCED: dict[str, list[str]] = LISTS["introduced"]


def test_a_name_is_listed_once() -> None:
    listed = [*ASSUMED, *itertools.chain.from_iterable(INTRODUCED.values())]
    assert sorted(listed) == sorted(set(listed))


def test_a_chapter_uses_only_what_has_been_introduced(chapter: str) -> None:
    assert chapter in INTRODUCED
    so_far = set(ASSUMED)
    for name, introduced in INTRODUCED.items():
        so_far |= set(introduced)
        if name == chapter:
            break
    used = names_used(source_file(ROOT, chapter))
    early = {name: f"cell {number}" for name, number in used.items() if name not in so_far}
    assert early == {}, "introduce these in the chapter's text and in torch_names.toml, or do without them"


def test_what_a_chapter_introduces_it_uses_and_its_text_names(chapter: str) -> None:
    file = source_file(ROOT, chapter)
    text, used = prose(file), names_used(file)
    unused = [name for name in INTRODUCED[chapter] if name not in used]
    unsaid = [name for name in INTRODUCED[chapter] if not re.search(rf"(?<!\w){name.split('.')[-1]}(?!\w)", text)]
    assert (unused, unsaid) == ([], [])


def test_names_are_found_under_every_kind_of_import(tmp_path: Path) -> None:
    file = tmp_path / "chapter.py"
    file.write_text(
        "# %%\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\nfrom torch.optim import SGD\n"
        "# %%\nclass Own(nn.Module):\n    def forward(self, x):\n        return F.relu(torch.nn.init.ones_(x).mean())\n"
        "# %%\nnn.Module.register_buffer\nOwn().register_forward_hook(print)\nother.nn.Linear\n",
        encoding="utf-8",
    )
    assert names_used(file) == {
        "torch.optim.SGD": 0,
        "torch.nn.Module": 1,
        "torch.nn.functional.relu": 1,
        "torch.nn.init.ones_": 1,
        "Module.register_forward_hook": 2,
    }
