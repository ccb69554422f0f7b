"""The emulator answers as the recorded NetBox did."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.netbox.emulator import TOKEN, answer
from tests.netbox.recordings import exchange, recorded_world, with_recordings

pytestmark = with_recordings
SAME = (
    "024-devices-page1",
    "025-devices-page2",
    "026-devices-page-last",
    "027-devices-offset-past-end",
    "030-devices-all",
    "032-devices-fields",
    "034-devices-fields-unknown",
    "035-devices-limit-0",
    "037-devices-limit-bad",
    "038-devices-limit-negative",
    "043-devices-by-role",
    "044-devices-by-role-two",
    "045-devices-by-role-unknown",
    "046-devices-by-site",
    "047-devices-by-site-unknown",
    "048-devices-by-tag",
    "049-devices-by-tag-two",
    "052-devices-by-status",
    "053-devices-by-status-two",
    "054-devices-by-status-bad",
    "056-devices-by-rack-id",
    "057-devices-by-rack-id-unknown",
    "058-devices-by-rack-name",
    "059-devices-by-rack-id-null",
    "061-devices-by-serial",
    "062-devices-by-serial-lower",
    "064-devices-by-serial-dup",
    "066-devices-by-serial-none",
    "068-devices-by-name",
    "069-devices-by-name-case",
    "081-devices-by-unknown-filter",
    "082-devices-by-unknown-lookup",
    "084-devices-by-id-list",
    "086-devices-by-rack-bad-type",
    "096-device-404",
    "097-device-not-a-number",
    "122-ip-addresses",
    "123-ip-by-device",
    "126-ip-by-address",
    "127-ip-by-address-bad",
    "138-sites",
    "153-cables-fields",
    "276-interfaces-of-24-nodes-fields",
)
SENT = {"007-bad-token-v2": "Bearer nbt_abc.def", "009-bad-auth-extra-word": "Token two words"}
"""Headers that the recordings hold only with the token taken out."""
REFUSED = ("005-noauth-devices", "006-bad-token", "007-bad-token-v2", "009-bad-auth-extra-word", "010-basic-auth")


@pytest.mark.parametrize("name", SAME)
def test_the_same_answer_as_recorded(name: str) -> None:
    """Status and body of a recorded request are those of the emulator, for the same objects."""
    recorded = exchange(name)
    found = answer(recorded_world(), "GET", target(recorded), {"authorization": f"Token {TOKEN}"})
    assert (found.status, found.body) == (recorded["response"]["status"], recorded["response"]["body"])


@pytest.mark.parametrize("name", REFUSED)
def test_the_same_refusal_as_recorded(name: str) -> None:
    """A wrong authorization is 403 with the recorded detail."""
    recorded = exchange(name)
    written = recorded["request"]["headers"].get("Authorization", "")
    wrong = SENT.get(name, written)
    found = answer(recorded_world(), "GET", target(recorded), {"authorization": wrong} if wrong else {})
    assert (found.status, found.body) == (403, recorded["response"]["body"])


def test_an_address_without_a_slash_is_moved() -> None:
    """A missing slash at the end is 301."""
    recorded = exchange("098-device-no-trailing-slash")
    found = answer(recorded_world(), "GET", target(recorded), {"authorization": f"Token {TOKEN}"})
    assert found.status == recorded["response"]["status"]


def target(recorded: dict) -> str:
    """Return path and query of a recorded request."""
    request = recorded["request"]
    query = urlencode([tuple(pair) for pair in request["query"]])
    return f"{request['path']}?{query}" if query else request["path"]
