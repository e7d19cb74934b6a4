"""Class lists as Excel, LibreOffice, Moodle and Canvas write them, and what is said about those with faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.instructor.roster import Student, read_roster
from autograder.messages import UsageError

ADA = Student("ada", "Ada", "Lovelace, Countess", "ada@example.org")
RENEE = Student("rene@x", "Renée", "Müller-Łoś", None)


@pytest.mark.parametrize(
    "text",
    [
        'id,first_name,last_name,email\nada,Ada,"Lovelace, Countess",ada@example.org\nrene@x,Renée,Müller-Łoś,\n',
        # Excel with a German or French keyboard: byte order mark, semicolons, CRLF.
        "\ufeffID;First name;Surname;E-Mail address\r\nada;Ada;Lovelace, Countess;ada@example.org\r\n"
        "rene@x;Renée;Müller-Łoś;\r\n",
        "sep=;\nUsername;First name;Last name;Email\nada;Ada;Lovelace, Countess;ada@example.org\n;;;\n\n"
        "rene@x;Renée;Müller-Łoś;\n",
        "Student ID\tGiven name\tFamily name\tMail\tGroup\nada\tAda\tLovelace, Countess\tada@example.org\tA\n"
        "rene@x\tRene\u0301e\tMu\u0308ller-Łos\u0301\n",
    ],
    ids=[
        "commas and quotes",
        "Excel's semicolons",
        "sep= line and empty rows",
        "tabs, decomposed accents, more columns",
    ],
)
def test_the_same_class_from_every_spreadsheet(tmp_path: Path, text: str) -> None:
    file = tmp_path / "roster.csv"
    file.write_text(text, encoding="utf-8", newline="")
    assert read_roster(file) == [ADA, RENEE]


def test_a_quoted_field_may_hold_quotes_and_a_line_break(tmp_path: Path) -> None:
    file = tmp_path / "roster.csv"
    file.write_text('id,last_name\nbob,"O""Neill\nJr."\neve,\neve,x\n', encoding="utf-8")
    with pytest.raises(UsageError, match="line 5 has the id 'eve', which line 4 has already"):
        read_roster(file)
    file.write_text('id,last_name\nbob,"O""Neill\nJr."\n', encoding="utf-8")
    assert read_roster(file) == [Student("bob", None, 'O"Neill Jr.')]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty"),
        (b"name,mail\nAda,a@x\n", "no column is called id (the first line names: name, mail)"),
        (b"id,email\n", "names no students"),
        (b"id,Username\nada,ada\n", "both mean id"),
        (b"id\nada\nbob\nAda\n", "line 4 has the id 'ada', which line 2 has already"),
        (b"id,email\nada,a@x\nbob,A@X\n", "line 3 has the address 'a@x', which line 2 has already"),
        (b"id\nada\n../root\n", "line 3 has the id '../root'"),
        (b"id\na+b\n", "line 2 has the id 'a+b'"),
        (b"id,first_name\n,Ada\n", "line 2 has no id"),
        (b"id,last_name\nada,Lovelace, Countess\n", "line 2 has 3 fields, the first line names 2"),
        (b'id,last_name\nada,"Lovelace\n', "line 2: a quoted field is not closed"),
        ("id,last_name\nada,Ångström\n".encode("latin-1"), "is not UTF-8 (line 2)"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: bytes, said: str) -> None:
    file = tmp_path / "roster.csv"
    file.write_bytes(text)
    with pytest.raises(UsageError) as error:
        read_roster(file)
    assert said in str(error.value) and "roster.csv" in str(error.value)


def test_every_fault_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("id\nada\nada\nbob\nbob\n/\n", encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_roster(file)
    assert [line.split()[1] for line in str(error.value).splitlines()[1:]] == ["3", "5", "6"]


def test_a_roster_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_roster(tmp_path / "roster.csv")
