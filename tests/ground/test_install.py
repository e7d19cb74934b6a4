"""The installer, with a real Python and a real pip on a project so small that no network is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
"""

# The smallest build backend that pip accepts: it writes the wheel by hand. It fails while a file `broken` exists,
# and notes each call, so that a test can count the installations.
BACKEND = """
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with open("calls", "a") as calls:
        calls.write("x")
    if pathlib.Path("broken").exists():
        raise RuntimeError("the network went away")
    with zipfile.ZipFile(pathlib.Path(folder, "tiny-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("tiny.py", "")
        text = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\nProvides-Extra: test\\n"
        wheel.writestr("tiny-1.dist-info/METADATA", text)
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"

def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise NotImplementedError
"""


class Clone:
    """A folder with the installer and a tiny project, as a fresh clone would be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "install.sh", folder / "tools")
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "requirements.lock").write_text("")

    @property
    def venv(self) -> Path:
        """The environment that the installer makes."""
        return self.folder / ".venv"

    @property
    def installations(self) -> int:
        """How often pip built the project."""
        calls = self.folder / "calls"
        return len(calls.read_text()) if calls.exists() else 0

    def command(self, what: str = "lab", **variables: str) -> tuple[list[str], dict[str, str]]:
        """Return the command and an environment without the pip settings of this machine."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
        environment |= {"PYTHON": getattr(sys, "_base_executable", sys.executable), "PIP_NO_INDEX": "1"} | variables
        return ["sh", str(self.folder / "tools" / "install.sh"), what], environment

    def install(self, what: str = "lab", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the installer to its end."""
        arguments, environment = self.command(what, **variables)
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with everything installed; the tests that share it leave it so."""
    # The space is on purpose: people keep courses in folders such as "My Documents".
    clone = Clone(tmp_path_factory.mktemp("ground") / "a clone")
    result = clone.install()
    assert result.returncode == 0, result.stdout + result.stderr
    return clone


def program(folder: Path, name: str, text: str) -> Path:
    """Write a shell script that stands for an interpreter."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


OLD = 'case "$1" in --version) echo "Python 3.9.2" ;; *) exit 1 ;; esac'


def test_an_old_python_is_refused_in_one_sentence(tmp_path: Path) -> None:
    old = program(tmp_path / "bin", "python3", OLD)
    clone = Clone(tmp_path / "clone")
    result = clone.install(PYTHON=str(old))
    assert result.returncode == 1
    assert result.stderr.strip() == f"PYTHON={old} is Python 3.9.2; the course needs Python 3.11 or newer."
    assert not clone.venv.exists()


def test_no_python_new_enough_on_the_path(tmp_path: Path) -> None:
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        program(tmp_path / "bin", name, OLD if name == "python3" else "echo 'no such version' >&2; exit 127")
    for tool in ("sh", "dirname", "mkdir", "flock", "cat", "rm", "sleep", "grep", "head"):
        if where := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(where)
    result = Clone(tmp_path / "clone").install(PYTHON="", PATH=str(tmp_path / "bin"))
    assert result.returncode == 1
    assert "needs Python 3.11 or newer, and none was found (python3 here is Python 3.9.2)." in result.stderr
    assert "make lab PYTHON=" in result.stderr


def test_a_python_that_does_not_start(tmp_path: Path) -> None:
    result = Clone(tmp_path / "clone").install(PYTHON=str(tmp_path / "nowhere"))
    assert result.returncode == 1
    assert "does not start: give the path of Python 3.11 or newer." in result.stderr


def test_a_python_without_venv(tmp_path: Path) -> None:
    halved = program(tmp_path / "bin", "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    result = Clone(tmp_path / "clone").install(PYTHON=str(halved))
    assert result.returncode == 1
    assert "apt install python3-venv" in result.stderr


def test_an_unknown_set_is_named() -> None:
    result = subprocess.run(["sh", str(ROOT / "tools" / "install.sh"), "lap"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert "'lap'" in result.stderr and "lab, test or lock" in result.stderr


def test_a_second_run_installs_nothing(installed: Clone) -> None:
    before = installed.installations
    start = time.monotonic()
    result = installed.install()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert time.monotonic() - start < 2
    assert installed.installations == before


def test_a_changed_lock_installs_again_and_only_once(installed: Clone) -> None:
    before = installed.installations
    (installed.folder / "requirements.lock").write_text("# another version\n")
    assert "Installed." in installed.install().stdout
    assert installed.install().stdout == ""
    assert installed.installations == before + 1


def test_what_the_checks_need_serves_a_student_too(installed: Clone) -> None:
    assert "Installed." in installed.install("test").stdout
    assert installed.install("lab").stdout == ""


def test_a_failed_installation_is_finished_by_the_next_run(installed: Clone) -> None:
    (installed.folder / "requirements.lock").write_text("# a failing one\n")
    (installed.folder / "broken").touch()
    failed = installed.install()
    assert failed.returncode == 1
    assert "pip could not finish" in failed.stderr and "run the same command again" in failed.stderr
    assert "the network went away" in (installed.venv / "install.log").read_text()
    assert list(installed.venv.glob(".course-*")) == []
    (installed.folder / "broken").unlink()
    assert "Installed." in installed.install().stdout
    assert installed.install().stdout == ""


def test_a_package_that_pip_left_half_written_is_installed_again(installed: Clone) -> None:
    [information] = installed.venv.glob("lib/python*/site-packages/tiny-1.dist-info")
    (information / "INSTALLER").unlink()
    (information.parent / "tiny.py").unlink()
    for stamp in installed.venv.glob(".course-*"):
        stamp.unlink()
    assert "Installed." in installed.install().stdout
    assert (information.parent / "tiny.py").exists() and (information / "INSTALLER").exists()


def test_two_runs_at_once_install_once(installed: Clone) -> None:
    (installed.folder / "requirements.lock").write_text("# wanted by two\n")
    before = installed.installations
    arguments, environment = installed.command()
    runs = [subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    output = "".join(run.communicate(timeout=120)[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert output.count("Installed.") == 1
    assert installed.installations == before + 1


def test_a_lock_whose_owner_is_gone_does_not_block(tmp_path: Path) -> None:
    """Without flock the turn is a folder, which a killed run leaves behind."""
    everything = tmp_path / "bin"
    everything.mkdir()
    for tool in ("sh", "dirname", "mkdir", "mv", "cat", "rm", "sleep", "grep", "head"):
        (everything / tool).symlink_to(str(shutil.which(tool)))
    gone = subprocess.Popen(["true"])
    gone.wait()
    clone = Clone(tmp_path / "clone")
    (clone.folder / ".venv.turn").mkdir()
    (clone.folder / ".venv.turn" / "owner").write_text(str(gone.pid))
    result = clone.install(PYTHON=str(program(everything, "python3", OLD)), PATH=str(everything))
    assert "needs Python 3.11 or newer" in result.stderr
    assert not (clone.folder / ".venv.turn").exists()


# The last one on the shared clone, because it makes the environment anew.
def test_a_broken_environment_is_made_again(installed: Clone) -> None:
    python = installed.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    result = installed.install()
    assert result.returncode == 0, result.stderr
    assert "The .venv here is broken or was made for another folder; making it again." in result.stdout
    assert installed.install().stdout == ""
    assert subprocess.run([str(python), "-c", "import tiny"], cwd="/").returncode == 0


def test_every_target_that_help_names_exists() -> None:
    help_text = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^  make ([a-z-]+)", help_text, re.MULTILINE)
    assert {"lab", "test", "notebooks", "lock", "clean"} <= set(targets)
    for target in targets:
        tried = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
        assert tried.returncode == 0, f"make help names `{target}`, but: {tried.stderr}"
    bare = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert bare == help_text, "`make` alone shows the help"
