"""The lab's MAAS answers the recorded requests as the real MAAS 3.4.10 did: status, content type, shape, words, states."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clusterctl_lab.emulators.maas.status import Status
from lab.tests.emulators.maas.replay import MACS, Replay, Reply, plain
from tests.edges.maas.recordings import Recording, differences, load
from tests.edges.maas.testca import Ca

RECORDINGS = load()

NOT_IMPLEMENTED = {
    11: "HMAC-SHA1 signatures: no client in the lab signs so",
    81: "script results: the lab's machines run no commissioning scripts",
    82: "script results: the lab's machines run no commissioning scripts",
    86: "LVM layout: the lab writes one root filesystem",
    98: "partitions by hand: the lab writes one root filesystem",
    99: "partitions by hand: the lab writes one root filesystem",
    100: "partitions by hand: the lab writes one root filesystem",
    101: "partitions by hand: the lab writes one root filesystem",
    102: "partitions by hand: the lab writes one root filesystem",
    104: "static addresses: the lab's hosts have fixed ones",
    105: "static addresses: the lab's hosts have fixed ones",
    106: "static addresses: the lab's hosts have fixed ones",
    107: "static addresses: the lab's hosts have fixed ones",
    126: "tag definitions are stored, not evaluated",
    136: "storage constraints of allocate",
    166: "machines' own OAuth tokens",
    171: "lshw and lldp documents as BSON",
    251: "an account's keys: shown by MAAS in clear, not by the lab",
}
OTHER_WORDS = {  # recording → the field that differs, and why
    34: {"fqdn": "MAAS invents a hostname of two words"},
    154: {"status_message": "MAAS was asked between `Deploying` and `Powering on`"},
}

Happening = Callable[[Replay], Awaitable[None]]


async def failed_deployment(replay: Replay) -> None:
    await replay.deploys("n1")
    replay.hosts.broken.add("n1")
    await replay.boots("n1")
    replay.hosts.broken.clear()


async def failed_commissioning(replay: Replay) -> None:
    await replay.settle()
    replay.service.lifecycle.commission(replay.node("n2"), "admin", tests=False)
    replay.maas.faults.failing_scripts.add("n2")
    await replay.boots("n2")


async def failed_testing(replay: Replay) -> None:
    replay.maas.faults.failing_scripts.clear()
    replay.service.lifecycle.commission(replay.node("n2"), "admin", tests=False)
    await replay.boots("n2")
    replay.service.lifecycle.test(replay.node("n2"), "admin")
    replay.maas.faults.failing_scripts.add("n2")
    await replay.boots("n2")
    replay.maas.faults.failing_scripts.clear()


async def dead_bmc(replay: Replay) -> None:
    await replay.settle()
    replay.power.dead = True


async def bmc_lives(replay: Replay) -> None:
    await replay.settle()
    replay.power.dead = False


async def no_rack(replay: Replay) -> None:
    await replay.settle()
    replay.maas.faults.rack_connected = False


async def rack_back(replay: Replay) -> None:
    replay.maas.faults.rack_connected = True
    await replay.ready("n1")
    await replay.boots("n2")


async def slow_bmc(replay: Replay) -> None:
    await replay.ready("n1")
    replay.power.slow = True


async def slow_bmc_done(replay: Replay) -> None:
    replay.power.hurry()
    await replay.settle()


async def slow_bmc_again(replay: Replay) -> None:
    replay.power.slow = True


async def aborted_at_last(replay: Replay) -> None:
    await slow_bmc_done(replay)
    replay.service.lifecycle.abort(replay.node("n1"), "commissioning")
    await replay.settle()


async def deployed(replay: Replay) -> None:
    await replay.deploys("n1")
    await replay.boots("n1")


async def another_machine(replay: Replay) -> None:
    """The last recordings are of another machine, z1, already Ready."""
    create = next(item for item in RECORDINGS if item.name == "create-ok-nocommission")
    data = {**create.data, "hostname": "z1", "mac_addresses": MACS["z1"]}
    fields = {**create.__dict__, "data": data, "body": {"system_id": "d6nfpx"}}
    await replay.send(Recording(**fields))
    replay.service.lifecycle.commission(replay.node("z1"), "admin")
    await replay.boots("z1")
    await replay.ready("z1")


def then(act: str, *machines: str) -> Happening:
    async def happening(replay: Replay) -> None:
        for name in machines:
            await getattr(replay, act)(name)

    return happening


HAPPENS_BEFORE: dict[int, Happening] = {
    80: then("boots", "n1"),
    84: then("boots", "n1"),
    150: then("ready", "n1"),
    151: then("ready", "n1"),
    152: then("allocated", "n1"),
    158: then("boots", "n1"),
    181: deployed,
    182: then("boots", "n1"),
    187: then("allocated", "n1"),
    195: then("allocated", "n1"),
    197: then("ready", "n1"),
    198: failed_deployment,
    201: dead_bmc,
    208: bmc_lives,
    209: no_rack,
    215: rack_back,
    216: failed_commissioning,
    218: failed_testing,
    222: then("boots", "n2"),
    227: slow_bmc,
    232: slow_bmc_done,
    234: slow_bmc_again,
    236: aborted_at_last,
    252: another_machine,
}
WITHOUT_SETTLING = range(228, 236)
"""Requests that come while a BMC is still at work."""


def mismatches(recording: Recording, reply: Reply, replay: Replay) -> list[str]:
    if (reply.status, reply.content_type) != (recording.status, recording.content_type):
        return [
            f"{reply.status} {reply.content_type} instead of {recording.status} {recording.content_type}: {reply.body}"
        ]
    found = []
    for header in ("retry-after", "www-authenticate", "allow"):
        theirs = recording.headers.get(header)
        if theirs != {name.lower(): value for name, value in reply.headers.items()}.get(header):
            found.append(f"header {header} is not {theirs!r}")
    if recording.status >= 400 and recording.is_json:
        theirs = recording.body
        return found if reply.body == theirs else [*found, f"{reply.body!r} instead of {theirs!r}"]
    if not isinstance(recording.body, dict | list):
        ours, theirs = plain(str(reply.body)), replay.ours(plain(str(recording.body or "")))
        return found if ours == theirs else [*found, f"{ours!r} instead of {theirs!r}"]
    allowed = OTHER_WORDS.get(recording.number, {})
    theirs = json.loads(replay.ours(json.dumps(recording.body)))
    return found + [
        item for item in differences(reply.body, theirs) if not any(f".{name}:" in item for name in allowed)
    ]


async def run(replay: Replay) -> tuple[dict[int, list[str]], int]:
    found: dict[int, list[str]] = {}
    compared = 0
    for recording in RECORDINGS:
        if recording.number in NOT_IMPLEMENTED:
            continue
        if recording.number in HAPPENS_BEFORE:
            await HAPPENS_BEFORE[recording.number](replay)
        elif recording.number not in WITHOUT_SETTLING:
            await replay.settle()
        reply = await replay.send(recording)
        compared += 1
        wrong = mismatches(recording, reply, replay)
        if wrong:
            found[recording.number] = [recording.name, *wrong]
    return found, compared


@pytest.mark.skipif(not RECORDINGS, reason="no recorded exchanges next to the checkout")
def test_the_recorded_sequence_is_answered_as_recorded(tmp_path: Path):
    """All exchanges but those of the table, in order; the lab is given what happened between them."""

    async def all_of_it() -> tuple[dict[int, list[str]], int]:
        ca = Ca(tmp_path)
        key = next(item for item in RECORDINGS if item.name == "list-tokens").body[0]["token"]
        replay = Replay(key)
        await replay.open(ca.server_context("127.92.0.2"), ssl.create_default_context(cafile=str(ca.file)))
        try:
            return await run(replay)
        finally:
            await replay.close()

    found, compared = asyncio.run(asyncio.wait_for(all_of_it(), 600))
    print(f"{compared} of {len(RECORDINGS)} recorded exchanges replayed, {len(NOT_IMPLEMENTED)} not implemented")
    for number, wrong in found.items():
        print(number, *wrong, sep="\n    ")
    assert not found
    assert compared == len(RECORDINGS) - len(NOT_IMPLEMENTED) >= 230


def test_the_names_of_states_are_maas_own():
    """The strings that people and scripts see."""
    assert {status.label for status in Status} >= {
        "Failed commissioning",
        "Releasing failed",
        "Failed to enter rescue mode",
    }
