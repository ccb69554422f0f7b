"""Headers of a peer's answer hold times and numbers of any kind: what is none is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.edges.maas.api import MaasBusyError, date_of, refusal
from clusterctl.edges.redfish.connection import Reply
from tests.peers.poison import few

GOOD = "Fri, 31 Dec 1999 23:59:59 GMT"
HEADERS = (
    "",
    "-1",
    "²",
    "9" * 400,
    "1e999",
    "inf",
    GOOD,
    "Fri, 31 Dec 99999999999999999999 23:59:59 GMT",
    "Fri, 31 Dec 1999 99999999999999999999:59:59 GMT",
    "Fri, 31 Dec 1999 23:59:59 +99999999999999999999",
    "Fri, 31 Dec 1999 23:59:59 -0000",
    "Fri, 31 Dec 0001 00:00:00 +2359",
)
ANY_HEADER = st.one_of(st.sampled_from(HEADERS), st.text(st.characters(max_codepoint=255), max_size=60))


def wait_of_maas(header: str) -> float | None:
    error = refusal(503, {"retry-after": header}, "", where="MAAS", writes=False)
    assert isinstance(error, MaasBusyError)
    return error.retry_after


def wait_of_bmc(header: str, date: str) -> float | None:
    return Reply(503, b"", {"retry-after": header, "date": date}).retry_after


def check(header: str, date: str) -> None:
    for wait in (wait_of_maas(header), wait_of_bmc(header, date), wait_of_bmc(header, GOOD)):
        assert wait is None or 0 <= wait < float("inf")
    found = date_of(header)
    assert found is None or found.tzinfo is not None


@pytest.mark.parametrize("header", HEADERS)
def test_listed_headers(header: str) -> None:
    """A wait is a finite number of seconds or none, a time has a zone or is none."""
    check(header, header)


@few
@given(header=ANY_HEADER, date=ANY_HEADER)
def test_any_header(header: str, date: str) -> None:
    """The same for any text of a header."""
    check(header, date)


def test_honest_headers() -> None:
    """Are read."""
    assert wait_of_maas("10") == wait_of_bmc("10", "") == 10.0
    assert wait_of_bmc("Sat, 01 Jan 2000 00:00:09 GMT", GOOD) == 10.0
    assert date_of(GOOD) is not None
