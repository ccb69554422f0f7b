"""Prefixes, ranks and times of lines of job logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from clusterctl.formats.job_lines import TimeReader, read_line

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "rank", "text"),
    [
        ("7: hello", 7, "hello"),
        ("[rank12]: hello", 12, "hello"),
        ("[1,3]<stderr>:hello", 3, "hello"),
        ("3: [rank5]: hello", 5, "hello"),
        ("\x1b[31m[default4]:hello\x1b[0m", 4, "hello"),
        ("[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog", 1, "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog"),
        ("plain", None, "plain"),
    ],
)
def test_prefixes_of_launchers(raw: str, rank: int | None, text: str) -> None:
    found = read_line(raw)
    assert (found.rank, found.text) == (rank, text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[E321 02:07:08.500000 x.cpp:1] text", datetime(2025, 3, 21, 2, 7, 8, 500000, tzinfo=UTC)),
        ("W0227 17:39:41.936000 293814 api.py] text", datetime(2026, 2, 27, 17, 39, 41, 936000, tzinfo=UTC)),
        ("[2026-02-28 10:11:12] iteration", datetime(2026, 2, 28, 10, 11, 12, tzinfo=UTC)),
        ("2026-02-28T10:11:12,859532+02:00 text", datetime(2026, 2, 28, 8, 11, 12, 859532, tzinfo=UTC)),
        ("2025-02-18 12:54 [rank13]:[E218 04:54:22.8 x]", datetime(2025, 2, 18, 12, 54, tzinfo=UTC)),
        ("[Mon Oct 16 09:50:06 2017] text", datetime(2017, 10, 16, 9, 50, 6, tzinfo=UTC)),
        ("Dec 29 16:41:37 n1 kernel: text", datetime(2025, 12, 29, 16, 41, 37, tzinfo=UTC)),
        ("no time here", None),
        ("2026-02-31 10:11:12 no such day", None),
        ("E1399 02:07:08.5 no such day", None),
    ],
)
def test_times(line: str, expected: datetime | None) -> None:
    """A time without a year is of the year that ends with the reference."""
    assert TimeReader(AT).read(line) == expected


def test_a_zone_is_applied_to_times_without_one() -> None:
    reader = TimeReader(AT, timezone(timedelta(hours=2)))
    assert reader.read("[2026-02-28 10:11:12] x") == datetime(2026, 2, 28, 8, 11, 12, tzinfo=UTC)
    assert reader.read("Feb 28 10:11:12 n1 kernel: x") == datetime(2026, 2, 28, 8, 11, 12, tzinfo=UTC)
