"""What all tests share: where the repository is, and which chapters it has."""

from __future__ import annotations

from pathlib import Path

import pytest

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
