"""pyproject.toml, requirements.lock, environment.yml and what is installed: one set of versions, said four times."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {"pytorch": "torch"}


def requirements(*lists: list[str]) -> list[Requirement]:
    """Return the requirements of several lists of pyproject.toml."""
    return [Requirement(text) for texts in lists for text in texts]


LOCKED_REQUIREMENTS = requirements(
    PROJECT["dependencies"], *(texts for name, texts in EXTRAS.items() if name != "lock")
)
INSTALLED_REQUIREMENTS = requirements(PROJECT["dependencies"], EXTRAS["test"])


def lock() -> dict[str, str]:
    """Return the locked version of each package."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith((" ", "#"))]
    return {canonicalize_name(name): version.split(";")[0].strip() for name, version in pins}


@pytest.mark.parametrize("requirement", LOCKED_REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_lock_satisfies_every_bound(requirement: Requirement) -> None:
    version = lock().get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement.name} is not in requirements.lock; run `make lock`"
    assert requirement.specifier.contains(version), f"the lock has {version}; run `make lock`"


@pytest.mark.parametrize("requirement", INSTALLED_REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_what_is_installed_is_what_is_locked(requirement: Requirement) -> None:
    # A CPU build of torch calls itself 2.13.0+cpu; it is the same public version.
    assert Version(metadata.version(requirement.name)).public == lock()[canonicalize_name(requirement.name)]


def test_only_torch_is_pinned() -> None:
    pinned = [item.name for item in LOCKED_REQUIREMENTS if any(s.operator != ">=" for s in item.specifier)]
    assert pinned == ["torch"]
    assert all(item.specifier for item in LOCKED_REQUIREMENTS), "every dependency needs a lower bound"


def test_lock_serves_every_machine() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    strange = [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+( ; .+)?", line)]
    assert strange == [], "only name==version, without local versions, addresses, options or paths"
    assert not re.search(r"file:/|https?:|--hash|--index|--find-links|(?<![\w.])/\w", text)
    platform_bound = [line for line in pins if re.match(r"(nvidia|cuda|triton)", line)]
    assert platform_bound == [], "torch brings these along where they are needed; `make lock` leaves them out"


def test_conda_names_the_locked_versions() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [item for item in environment["dependencies"] if isinstance(item, str) and "=" in item]
    versions = dict(item.split("=", 1) for item in conda)
    python = Version(versions.pop("python"))
    assert f"{python.major}.{python.minor}" in PROJECT["requires-python"], "conda makes the oldest Python we support"
    assert versions, "environment.yml names no version at all"
    for name, version in versions.items():
        assert lock()[CONDA_NAMES.get(name, name)] == version, f"{name} in environment.yml is not what is locked"
    [pip] = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
    assert "-c requirements.lock" in pip and "-e ." in pip, "pip installs the rest, at the versions of the lock"
