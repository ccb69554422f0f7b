"""Manners of BMCs, each played by a server: what `discover` makes of the machine behind it, and what it asks to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Location, NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import SESSIONS, Bmc, Handler, error
from tests.edges.redfish.trees import Manner, answer
from tests.faulty import hang
from tests.fleet.skus import H100_X8

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "manners.yml").read_text())
SKU = replace(
    H100_X8,
    name="gx8",
    manufacturer="Example",
    model="GX-8000",
    gpu_count=2,
    hca_count=2,
    data_drive_count=1,
    memory_gib=1,
    root_disk=RootDisk(max_bytes=10**12),
)
NODE = NodeState(NodeId("id1"), "n1", bmc="127.0.0.1", location=Location("A01", 4))
SYSTEM = "/redfish/v1/Systems/1"
PROCESSORS = f"{SYSTEM}/Processors"
DRIVE = "/redfish/v1/Chassis/Disks/Drives/1"
DENIED = error("Base.1.8.InsufficientPrivilege", "There are insufficient privileges.")
Played = Callable[[Handler], bool]


def offers_expand(bmc: Bmc) -> None:
    bmc.tree["/redfish/v1"]["ProtocolFeaturesSupported"] = {"ExpandQuery": {"NoLinks": True, "Levels": True}}


def on_expand(bmc: Bmc, play: Callable[[Handler], None]) -> Played:
    """Play on each `$expand`, which the BMC offers."""
    offers_expand(bmc)

    def played(handler: Handler) -> bool:
        if "$expand" not in handler.path:
            return False
        play(handler)
        return True

    return played


def expand_drops(bmc: Bmc) -> Played:
    return on_expand(bmc, lambda handler: handler.reply(200, answer(bmc.tree, handler.path, Manner.LOSES)))


def expand_drops_without_count(bmc: Bmc) -> Played:
    def play(handler: Handler) -> None:
        found = answer(bmc.tree, handler.path, Manner.LOSES)
        handler.reply(200, {key: value for key, value in cast("dict[str, Any]", found).items() if "count" not in key})

    return on_expand(bmc, play)


def expand_hangs(bmc: Bmc) -> Played:
    return on_expand(bmc, hang)


def expand_fails(bmc: Bmc) -> Played:
    return on_expand(bmc, lambda handler: handler.reply(500, {}))


def on_sessions(status: int, body: Any) -> Played:
    def played(handler: Handler) -> bool:
        if handler.command != "POST" or handler.path != SESSIONS:
            return False
        handler.reply(status, body)
        return True

    return played


def sessions_404(_bmc: Bmc) -> Played:
    return on_sessions(404, {})


def sessions_405(_bmc: Bmc) -> Played:
    return on_sessions(405, {})


def no_privilege_for_sessions(_bmc: Bmc) -> Played:
    return on_sessions(403, DENIED)


def no_privilege(_bmc: Bmc) -> Played:
    def played(handler: Handler) -> bool:
        if handler.command != "GET" or handler.path != "/redfish/v1/Systems":
            return False
        handler.reply(403, DENIED)
        return True

    return played


def tree_only(change: Callable[[dict[str, Any]], None]) -> Callable[[Bmc], Played]:
    def play(bmc: Bmc) -> Played:
        change(bmc.tree)
        return lambda _handler: False

    return play


def _twice(tree: dict[str, Any]) -> None:
    tree[PROCESSORS]["Members"] *= 2
    drives = tree[f"{SYSTEM}/Storage/NVMe"]
    drives["Drives"] *= 2


def _grown(tree: dict[str, Any]) -> None:
    """The first page counts what was there when it was made; one member came since."""
    members = tree[PROCESSORS]["Members"]
    tree[PROCESSORS] |= {"Members": members[:3], "Members@odata.nextLink": f"{PROCESSORS}?$skip=3"}
    tree[PROCESSORS]["Members@odata.count"] = len(members) - 1
    tree[f"{PROCESSORS}?$skip=3"] = {"Members": members[3:], "Members@odata.count": len(members)}


def _endless(tree: dict[str, Any]) -> None:
    tree[PROCESSORS]["Members@odata.nextLink"] = PROCESSORS


def _failure(reported: Any) -> Callable[[dict[str, Any]], None]:
    return lambda tree: tree[DRIVE].update(FailurePredicted=reported)


def no_utf8(_bmc: Bmc) -> Played:
    """The asset tag of the system, in Latin-1."""

    def played(handler: Handler) -> bool:
        if handler.command != "GET" or handler.path != SYSTEM:
            return False
        body = {**handler.server.tree[SYSTEM], "AssetTag": "@"}
        handler.raw(200, json.dumps(body).encode().replace(b'"@"', b'"M\xfcnchen"'))
        return True

    return played


def busy(_bmc: Bmc) -> Played:
    def played(handler: Handler) -> bool:
        handler.reply(503, {}, {"Retry-After": "1"})
        return True

    return played


def once(headers: dict[str, str]) -> Played:
    """Each path is refused once."""
    refused: set[str] = set()

    def played(handler: Handler) -> bool:
        if handler.command != "GET" or handler.path in refused:
            return False
        refused.add(handler.path)
        handler.reply(503, {}, headers)
        return True

    return played


def busy_once(_bmc: Bmc) -> Played:
    return once({"Retry-After": "0"})


def busy_until(_bmc: Bmc) -> Played:
    return once({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"})


PLAYS: dict[str, Callable[[Bmc], Played]] = {
    "expand_drops": expand_drops,
    "expand_drops_without_count": expand_drops_without_count,
    "expand_hangs": expand_hangs,
    "expand_fails": expand_fails,
    "sessions_404": sessions_404,
    "sessions_405": sessions_405,
    "duplicate_links": tree_only(_twice),
    "growing_pages": tree_only(_grown),
    "endless_pages": tree_only(_endless),
    "no_utf8": no_utf8,
    "blank_failure": tree_only(_failure("")),
    "null_failure": tree_only(_failure(None)),
    "word_failure": tree_only(_failure("true")),
    "no_privilege": no_privilege,
    "no_privilege_for_sessions": no_privilege_for_sessions,
    "busy_once": busy_once,
    "busy": busy,
    "busy_until": busy_until,
}


def discover(bmcs: RedfishBmcs, address: BmcAddress) -> tuple[Finding, ...]:
    """What the discover step finds of the machine; it must not write."""
    services = DiscoverServices(bmcs, lambda _name: address, dict)
    step = Discover(services, DiscoverPlan([SKU], workers=1, read_only=True))
    (outcome,) = step.run([NODE], cast("IntentLog", None), Deadline.after(120))
    return outcome.findings


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_manner(served: tuple[Bmc, BmcAddress], case: dict[str, Any]) -> None:
    """The verdict is that of a BMC that behaves, or names what is wrong with the BMC and not with the machine."""
    bmc, address = served
    bmcs = RedfishBmcs(FixedClock(), replace(QUICK, expand=2.0) if case["play"] == "expand_hangs" else QUICK)
    bmc.manner = PLAYS[case["play"]](bmc)
    found = discover(bmcs, address)
    for check, expected in case["expect"].items():
        verdict, _, code = expected.partition(" ")
        worst = max((one for one in found if one.check == check), key=lambda one: one.verdict.rank)
        assert worst.verdict.value == verdict, (worst, [one for one in found if not one.verdict.admits])
        assert not code or worst.code.value == code
    (about,) = [one for one in found if one.check == "bmc"]
    assert all(words in f"{about.cause} {about.remedy} {about.where}" for words in case.get("text", ()))
    if "expands" in case:
        discover(bmcs, address)
        assert sum("$expand" in path for _, path in bmc.asked) == case["expands"]


def test_every_row_is_played() -> None:
    """No function without a row, no row without a function."""
    assert {case["play"] for case in CASES} == PLAYS.keys()
