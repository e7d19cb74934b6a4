"""What all tests share: where the repository is, and which chapters it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.figures import FIGURES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return ROOT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for ``chapter`` once for each chapter that has a source."""
    if "chapter" in metafunc.fixturenames:
        folders = sorted(path.name for path in (ROOT / "solutions").glob("ch[0-9][0-9]_*") if path.is_dir())
        metafunc.parametrize("chapter", folders, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where several processes test, hand what this one has counted to the one that tells."""
    if (sent := getattr(session.config, "workeroutput", None)) is not None:
        sent["figures"] = FIGURES.as_data()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what one of several processes has counted."""
    FIGURES.add_all(getattr(node, "workeroutput", {}).get("figures", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of the hostile submissions, where any were graded."""
    if FIGURES.cases:
        terminalreporter.write_line(str(FIGURES))
