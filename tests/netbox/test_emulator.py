"""The emulator answers as the recorded NetBox did."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.netbox.emulator import TOKEN, answer
from tests.netbox.recordings import exchange, recorded_world, results, with_recordings

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


WRITES = (
    "195-patch-status-ok",
    "197-patch-status-bad",
    "198-patch-status-as-object",
    "200-patch-unknown-field",
    "203-patch-if-match-current",
    "205-patch-changelog-message",
    "206-patch-cf",
    "207-patch-cf-unknown",
    "212-patch-tags-replace",
    "213-patch-tags-by-name",
    "214-patch-tags-unknown",
    "247-journal-post",
    "248-journal-post-bad-kind",
    "249-journal-post-no-object",
    "252-inventory-post",
    "253-inventory-post-again",
    "254-inventory-post-no-device",
    "285-inventory-patch-status",
)
COMPARED = ("status", "tags", "serial", "kind", "comments", "assigned_object_id", "detail", "device")


def test_the_same_writes_as_recorded() -> None:
    """Recorded writes, in their order on one world, have the recorded status and leave the recorded values."""
    world = recorded_world()
    world.add("extras/tags", *results("146-tags"))
    world.add("dcim/inventory-items", *results("148-inventory-items"))
    world.custom_fields = {item["name"] for item in results("144-custom-fields")}
    world.pages["extras/journal-entries"] = {}
    for name in WRITES:
        recorded = exchange(name)
        body, headers = json.dumps(recorded["request"]["body"]).encode(), {"authorization": f"Token {TOKEN}"}
        found = answer(world, recorded["request"]["method"], target(recorded), headers, body)
        assert (name, found.status) == (name, recorded["response"]["status"])
        assert values(found.body) == values(recorded["response"]["body"])


def test_a_stale_etag_is_refused_as_recorded() -> None:
    """`If-Match` with another ETag is 412, and the present one is named."""
    world, recorded = recorded_world(), exchange("201-patch-if-match-stale")
    headers = {"authorization": f"Token {TOKEN}", "if-match": 'W/"1999-01-01T00:00:00Z"'}
    found = answer(world, "PATCH", target(recorded), headers, b'{"status": "active"}')
    assert (found.status, found.body) == (412, recorded["response"]["body"])
    assert found.headers["ETag"].startswith('W/"2026-')


def values(body: Any) -> dict[str, Any]:
    """Return what of an answer a client reads: choices by their value, relations by their id, tags by their slugs."""
    found = {name: body[name] for name in COMPARED if name in body}
    if isinstance(found.get("status"), dict):
        found["status"] = found["status"]["value"]
    if isinstance(found.get("kind"), dict):
        found["kind"] = found["kind"]["value"]
    if isinstance(found.get("device"), dict):
        found["device"] = found["device"]["id"]
    if found.get("tags") and isinstance(found["tags"][0], dict):
        found["tags"] = sorted(tag["slug"] for tag in found["tags"])
    return found


def target(recorded: dict) -> str:
    """Return path and query of a recorded request."""
    request = recorded["request"]
    query = urlencode([tuple(pair) for pair in request["query"]])
    return f"{request['path']}?{query}" if query else request["path"]
