"""The pages for people: every link leads somewhere, and the exercise in docs/authors.md does what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHAPTER = "ch03_buffers_and_state"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS_OF_OTHERS = {".venv", "site", "node_modules", "build", "submitted", "feedback", "autograded"}


def _pages(root: Path) -> list[Path]:
    """The Markdown files of the repository: those that git knows, or all of them where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "*.md"], cwd=root, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    return [page for page in root.rglob("*.md") if not FOLDERS_OF_OTHERS & set(page.relative_to(root).parts)]


def _anchors(page: Path) -> set[str]:
    """The anchors that a code host makes of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_relative_link_leads_to_a_file_and_a_heading(root: Path) -> None:
    pages = _pages(root)
    assert {"README.md", "CONTRIBUTING.md"} <= {str(page.relative_to(root)) for page in pages}
    dead = []
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                dead.append(f"{page.relative_to(root)} links to {link}, which is not there")
            elif anchor and target.suffix == ".md" and anchor not in _anchors(target):
                dead.append(f"{page.relative_to(root)} links to {link}, and that heading is not there")
    assert dead == []


def test_every_picture_has_words(root: Path) -> None:
    bare = [
        f"{page.relative_to(root)}: {picture}"
        for page in _pages(root)
        for picture in re.findall(r"!\[\s*\]\([^)]+\)", page.read_text(encoding="utf-8"))
    ]
    assert bare == []


def _files_of_the_guide(root: Path) -> dict[str, str]:
    text = (root / "docs" / "authors.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return dict(blocks)


@pytest.fixture(scope="module")
def followed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course in which somebody did what docs/authors.md says."""
    copy = tmp_path_factory.mktemp("guide") / "course"
    unused = shutil.ignore_patterns("__pycache__", "*.ipynb", "grading", "golden")
    for folder in ("autograder", "tests/autograder", f"solutions/{CHAPTER}"):
        shutil.copytree(
            root / folder,
            copy / folder,
            ignore=unused if folder != "autograder" else shutil.ignore_patterns("__pycache__"),
        )
    for file in ("tests/__init__.py", "tests/conftest.py", "tests/figures.py", "conftest.py", "pyproject.toml"):
        shutil.copy(root / file, copy / file)
    source = f"solutions/{CHAPTER}/{CHAPTER}.py"
    files = _files_of_the_guide(root)
    assert source in files and len(files) == 4
    cells = files.pop(source)
    for name, text in files.items():
        (copy / name).write_text(text, encoding="utf-8")
    chapter = (copy / source).read_text(encoding="utf-8")
    before = "# %% [markdown]\n# ## Quiz\n"
    assert chapter.count(before) == 1
    (copy / source).write_text(chapter.replace(before, f"{cells}\n{before}"), encoding="utf-8")
    return copy


def test_the_exercise_of_the_guide_is_proven_by_the_tests_that_it_names(root: Path, followed: Path) -> None:
    command = (root / "docs" / "authors.md").read_text(encoding="utf-8").split("PYTEST_ARGS='")[1].split("'")[0]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *command.split()],
        cwd=followed,
        env={**os.environ, "PYTHONPATH": str(followed)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    # Six wrong answers twice, three right ones, and the exercise as a whole.
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 18


def test_the_cells_of_the_guide_fit_its_exercise(followed: Path) -> None:
    reader = (
        "from pathlib import Path; from autograder.authoring.source import read_source;"
        f"notebook = read_source(Path('solutions/{CHAPTER}/{CHAPTER}.py'));"
        "print([c.metadata.nbgrader.grade_id for c in notebook.cells if 'nbgrader' in c.metadata])"
    )
    done = subprocess.run(
        [sys.executable, "-c", reader], cwd=followed, env={**os.environ, "PYTHONPATH": str(followed)},
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "'best_weights', 'best_weights_check'" in done.stdout
