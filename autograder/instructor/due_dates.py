"""Due dates as an instructor writes them, and as nbgrader keeps them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autograder.messages import UsageError

_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
LAST_MINUTE = time(23, 59)


def read_due_date(text: str, timezone: str, now: datetime | None = None) -> datetime:
    """Return a moment for ``2027-02-12``, ``2027-02-12 18:00`` or one with an offset, ``2027-02-12T18:00+01:00``.

    A date alone means 23:59 of that day. Without an offset the moment is in ``timezone``, an IANA name, or in this
    machine's zone where that is empty. Raises UsageError for another text and for a moment that has passed.
    """
    zone = read_timezone(timezone)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is no due date: write 2027-02-12, or 2027-02-12T18:00 for a time of day.") from None
    if _DATE_ONLY.fullmatch(text.strip()):
        moment = datetime.combine(moment, LAST_MINUTE)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
    if moment <= (now or datetime.now(UTC)):
        raise UsageError(f"The due date {written(moment)} has passed; nothing was written.")
    return moment


def read_timezone(name: str) -> ZoneInfo | None:
    """Return a time zone by its IANA name, None for an empty one. Raises UsageError for an unknown name."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"{name!r} is no time zone: write a name such as Europe/Zurich or America/New_York.") from None


def as_utc(moment: datetime) -> datetime:
    """Return a moment as nbgrader's gradebook keeps it: UTC, without saying so."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def written(moment: datetime) -> str:
    """Return a moment for people, with its zone."""
    return f"{moment:%a %d %b %Y %H:%M} {moment.tzname()}"
