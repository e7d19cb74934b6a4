"""One class on cold kernels, on Dask, with a gradebook in PostgreSQL and by formgrader's button: the same scores."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from autograder.grading.course import load_course
from tests.grading import classroom, postgresql_server
from tests.grading.answers import BIASED_BATCHNORM, RIGHT_BATCHNORM, RIGHT_DROPOUT, UNSCALED_DROPOUT
from tests.grading.classroom import CHAPTER

ANSWERS = {
    "ada": {"my_batchnorm": RIGHT_BATCHNORM, "my_dropout": RIGHT_DROPOUT},
    "ben": {"my_batchnorm": BIASED_BATCHNORM, "my_dropout": UNSCALED_DROPOUT},
    "cleo": {"my_batchnorm": "MyBatchNorm = nn.BatchNorm1d", "my_dropout": "import os\nos._exit(3)"},
}


def _hand_in(course: Path) -> None:
    for student, answers in ANSWERS.items():
        classroom.hand_in(course, student, answers, only=("my_batchnorm", "my_dropout"))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course with a class of three, nothing graded."""
    folder = classroom.make_course(root, tmp_path_factory.mktemp("elsewhere"))
    _hand_in(folder)
    return folder


@pytest.fixture(scope="module")
def scores(course: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """What the class scores on local processes, with a gradebook in SQLite; cold kernels agree cell by cell."""
    folder = tmp_path_factory.mktemp("here") / "course"
    shutil.copytree(course, folder)
    done, summary = classroom.grade(folder, "--jobs", "1", "--verify", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary["verified"] == [{"student": student, "differences": []} for student in ANSWERS]
    found = classroom.scores(folder)
    assert found["ada"]["my_batchnorm"] == 4 and 0 < found["ben"]["my_batchnorm"] < 4
    assert found["cleo"] == dict.fromkeys(found["cleo"], 0)
    return found


def test_a_dask_cluster_of_two_processes(course: Path, scores: dict, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    folder = tmp_path / "course"
    shutil.copytree(course, folder)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster:
        done, summary = classroom.grade(folder, "--scheduler", cluster.scheduler_address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert classroom.scores(folder) == scores
    assert not summary["notes"]
    done, summary = classroom.grade(folder, "--jobs", "1")
    assert {outcome["state"] for outcome in summary["outcomes"]} == {"unchanged"}


def test_a_scheduler_that_nobody_answers_at(course: Path) -> None:
    pytest.importorskip("distributed")
    done, _ = classroom.grade(course, "--scheduler", "nowhere://")
    assert done.returncode == 2 and "No Dask scheduler answers at nowhere://" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of an empty database on a real PostgreSQL server."""
    pytest.importorskip("psycopg")
    if postgresql_server.programs() is None:
        pytest.skip("there is no PostgreSQL server here (on Debian: apt-get install postgresql)")
    with postgresql_server.postgresql(Path(tempfile.gettempdir())) as address:
        yield address


def test_a_gradebook_in_postgresql(root: Path, tmp_path: Path, scores: dict, database: str) -> None:
    folder = classroom.make_course(root, tmp_path / "course", f"c.CourseDirectory.db_url = {database!r}")
    _hand_in(folder)
    done, summary = classroom.grade(folder, "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / "gradebook.db").exists()
    assert classroom.scores(folder, database) == scores
    done, summary = classroom.grade(folder, "--jobs", "1", "--force", "--student", "ben")
    assert [(each["student"], each["state"]) for each in summary["outcomes"]] == [("ben", "recorded")]
    assert classroom.scores(folder, database) == scores


def test_a_database_server_that_is_not_there(root: Path, course: Path, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    folder = tmp_path / "course"
    shutil.copytree(course, folder)
    with (folder / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.CourseDirectory.db_url = 'postgresql+psycopg://me:secret@/grades?host={tmp_path}'\n")
    done, _ = classroom.grade(folder)
    assert done.returncode == 3 and "cannot be opened" in done.stderr and "secret" not in done.stderr


def test_formgraders_button(course: Path, scores: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the button calls, from where a server runs: another folder than the course's."""
    folder = tmp_path / "course"
    shutil.copytree(course, folder)
    monkeypatch.chdir(tmp_path)
    loaded = load_course(folder)
    monkeypatch.chdir(tmp_path)
    config = loaded.config.copy()
    config.CourseDirectory.root = str(folder)
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    for student in ("ada", "ben"):
        said = api.autograde(CHAPTER, student)
        assert said["success"], said
    graded = {student: scores[student] for student in ("ada", "ben")}
    assert classroom.scores(folder) == graded
    assert not (tmp_path / "grading_seed.txt").exists() and not (tmp_path / ".grading").exists()
    # The button again, for one whose process ends: nbgrader alone would leave no grade at all.
    assert api.autograde(CHAPTER, "cleo")["success"]
    assert classroom.scores(folder) == scores
