"""Recordings: read, made into many machines, served with power, boot and sessions over them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.replay import (
    Copy,
    ReplaySettings,
    dangling,
    find_landmarks,
    load_recording,
    make_copies,
    vendor_of,
)
from clusterctl_lab.emulators.redfish.replay.serve import build_world
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.emulators.redfish.bmc_kit import PASSWORD, ask
from lab.tests.emulators.redfish.replay_kit import LOG, ROOT, SYSTEM, pack, small, write
from lab.tests.emulators.redfish.shapes import RECORDINGS

QUICK = Delays(power_off=0.0, post=0.0, netboot_timeout=0.0)
SETTINGS = ReplaySettings(IPv4Address("127.95.0.1"), 1, "root", PASSWORD, delays=QUICK)
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
Scene = Callable[[Bmc, World], Coroutine[Any, Any, None]]


def copies_of(folder: Path, count: int = 1, seed: int = 0) -> tuple[Copy, ...]:
    return make_copies(load_recording(write(small(), folder)), count, seed)


def play(folder: Path, scene: Scene) -> None:
    """With one recorded machine that is not served on any socket."""

    async def run() -> None:
        world, profiles = build_world(copies_of(folder), SETTINGS)
        bmc = Bmc(world, "node001", profiles["node001"])
        try:
            await scene(bmc, world)
        finally:
            await bmc.close()

    asyncio.run(run())


async def reset_done() -> None:
    """What the BMC does in the background is over."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*(task for task in others if task is not None))


def test_folder_and_archive_read_alike(tmp_path: Path) -> None:
    """A recording is the same tree whether it lies in a folder or in an archive, below any folder of its own."""
    folder = write(small(), tmp_path / "one")
    packed = load_recording(pack(folder, tmp_path / "one.tar.xz"))
    (copy,) = make_copies(packed, 1)
    assert dict(copy) == small()
    assert dict(make_copies(load_recording(folder), 1)[0]) == small()


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({f"{ROOT}/Systems": "{no"}, "redfish/v1/Systems/index.json", "is no JSON: "),
        ({f"{ROOT}/Systems": "[]"}, "redfish/v1/Systems/index.json", "is no JSON object"),
        ({"/other/redfish/v1": {}}, "tree", "holds 2 services"),
    ],
)
def test_a_broken_recording_is_refused(tmp_path: Path, change: dict[str, Any], where: str, words: str) -> None:
    """The error names the file that is wrong."""
    folder = write(small() | change, tmp_path / "tree")
    with pytest.raises(UsageError) as caught:
        load_recording(folder)
    assert caught.value.where.endswith(where)
    assert words in caught.value.message


@pytest.mark.parametrize("content", [None, b"", b"this is no archive"])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Nothing there, an empty file, another file: a usage error that names it, never a traceback."""
    archive = tmp_path / "some.tar.xz"
    if content is not None:
        archive.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_recording(archive)
    assert caught.value.where == str(archive)


def test_each_copy_has_identities_of_its_own(tmp_path: Path) -> None:
    """No two copies share a serial, a MAC or a GUID; within one, what belongs together still does."""
    copies = copies_of(tmp_path, 50)
    systems = [copy[SYSTEM] for copy in copies]
    for key in ("SerialNumber", "HostName", "UUID"):
        assert len({system[key] for system in systems}) == 50
    macs = [[port["MACAddress"].lower() for port in system["Ports"]] for system in systems]
    assert len({mac for pair in macs for mac in pair}) == 100
    for system, (first, second) in zip(systems, macs, strict=True):
        digits = [int(mac.replace(":", ""), 16) for mac in (first, second)]
        assert digits[1] == digits[0] + 1
        assert system["Ports"][0]["NodeGUID"].replace(":", "")[-6:] == first.replace(":", "")[-6:]
        assert system["UUID"][-6:].lower() == first.replace(":", "")[-6:]
        assert system["HostName"] == f"host-{system['SerialNumber']}"


def test_copies_are_drawn_from_a_seed(tmp_path: Path) -> None:
    """The same seed makes the same machines, another one others; a single copy is the recorded machine itself."""
    recording = load_recording(write(small(), tmp_path))
    first, again, other = (make_copies(recording, 3, seed)[0][SYSTEM]["SerialNumber"] for seed in (1, 1, 2))
    assert first == again != other
    assert make_copies(recording, 1)[0][SYSTEM]["SerialNumber"] == "SN00420017"


def test_paths_that_have_a_serial_in_them_move_with_it(tmp_path: Path) -> None:
    """A copy's links lead to its own resources, and no resource has the recorded path."""
    one, two = copies_of(tmp_path, 2)
    drives = [copy[SYSTEM]["Drive"]["@odata.id"] for copy in (one, two)]
    assert len({f"{SYSTEM}/Drives/DRV0099", *drives}) == 3
    for copy, path in zip((one, two), drives, strict=True):
        assert path in copy
        assert path in list(copy)
        assert copy[path]["SerialNumber"] == path.rsplit("/", 1)[-1]
        assert f"{SYSTEM}/Drives/DRV0099" not in copy


def test_too_many_copies_are_refused(tmp_path: Path) -> None:
    """Where serials run out it is reported, and none is given twice."""
    tree = {ROOT: {}, f"{ROOT}/Systems": {"SerialNumber": "A-12-B"}}
    recording = load_recording(write(tree, tmp_path))
    with pytest.raises(UsageError, match="cannot all have serials"):
        make_copies(recording, 10**6)


def test_gaps_are_reported(tmp_path: Path) -> None:
    """What a recording lacks that must be answered is named; so are links that lead nowhere."""
    (bare,) = make_copies(
        load_recording(write({ROOT: {"Systems": {"@odata.id": f"{ROOT}/Systems"}}}, tmp_path / "a")), 1
    )
    gaps = " ".join(find_landmarks(bare).gaps)
    assert all(word in gaps for word in ("session service", "no system", "event log"))
    assert dangling(bare) == 1
    (whole,) = copies_of(tmp_path / "b")
    assert find_landmarks(whole).gaps == ()


def test_power_lies_over_the_recording(tmp_path: Path) -> None:
    """A reset is seen at the system, whose ETag then is another; everything else stays as recorded."""

    async def scene(bmc: Bmc, _: World) -> None:
        before = ask(bmc, "GET", SYSTEM).body
        assert before is not None
        assert before["PowerState"] == "On"
        assert ask(bmc, "POST", RESET, {"ResetType": "ForceOff"}).status == 204
        await reset_done()
        after = ask(bmc, "GET", SYSTEM).body
        assert after is not None
        assert after["PowerState"] == "Off"
        assert after["@odata.etag"] != before["@odata.etag"]
        assert after["SerialNumber"] == "SN00420017"
        assert ask(bmc, "POST", RESET, {"ResetType": "PowerCycle"}).status == 400

    play(tmp_path, scene)


def test_boot_and_sessions_lie_over_the_recording(tmp_path: Path) -> None:
    """An override reads back; a login works, the recorded session is over."""

    async def scene(bmc: Bmc, _: World) -> None:
        boot = {
            "BootSourceOverrideTarget": "Pxe",
            "BootSourceOverrideEnabled": "Once",
            "BootSourceOverrideMode": "UEFI",
        }
        etag = ask(bmc, "GET", SYSTEM).headers.get("ETag", "")
        assert ask(bmc, "PATCH", SYSTEM, {"Boot": boot}, if_match=etag).status == 200
        system = ask(bmc, "GET", SYSTEM).body
        assert system is not None
        assert system["Boot"] == boot
        sessions = f"{ROOT}/SessionService/Sessions"
        login = ask(bmc, "POST", sessions, {"UserName": "root", "Password": PASSWORD})
        assert login.status == 201
        listed = ask(bmc, "GET", sessions).body
        assert listed is not None
        assert listed["Members"] == [{"@odata.id": login.headers["Location"]}]
        assert ask(bmc, "GET", f"{sessions}/old").status == 404

    play(tmp_path, scene)


def test_the_log_goes_on_and_is_cleared(tmp_path: Path) -> None:
    """Recorded entries are there with what happened since, until a client clears the log."""

    async def scene(bmc: Bmc, world: World) -> None:
        world.record("node001", "Critical", "It happened now.")
        reported = ask(bmc, "GET", f"{LOG}/Entries").body
        assert reported is not None
        assert [entry["Message"] for entry in reported["Members"]] == ["It was recorded.", "It happened now."]
        assert ask(bmc, "POST", f"{LOG}/Actions/LogService.ClearLog", {}).status == 204
        after = ask(bmc, "GET", f"{LOG}/Entries").body
        assert after is not None
        assert after["Members"] == []

    play(tmp_path, scene)


def test_pages_and_expansion(tmp_path: Path) -> None:
    """A recorded page is served at its own address, one that was not recorded is not found; members come expanded where
    the recorded service offers that.
    """

    async def scene(bmc: Bmc, _: World) -> None:
        page = ask(bmc, "GET", f"{LOG}/Entries", query="$skip=1").body
        assert page is not None
        assert page["Members"] == small()[f"{LOG}/Entries?$skip=1"]["Members"]
        assert ask(bmc, "GET", f"{LOG}/Entries", query="$skip=2").status == 404
        expanded = ask(bmc, "GET", f"{ROOT}/Systems", query="$expand=.($levels=1)").body
        assert expanded is not None
        assert expanded["Members"][0]["SerialNumber"] == "SN00420017"

    play(tmp_path, scene)


@pytest.mark.parametrize("vendor", [Vendor.DELL, Vendor.HPE, Vendor.SUPERMICRO])
def test_real_recordings(vendor: Vendor) -> None:
    """Each real recording names its vendor, lacks nothing that must be answered, and makes 511 machines whose serials,
    MAC addresses and GUIDs all differ.
    """
    archive = RECORDINGS / f"{vendor.value}.tar.xz"
    if not archive.exists():
        pytest.skip("the recorded trees are not here")
    recording = load_recording(archive)
    copies = make_copies(recording, 511)
    marks = find_landmarks(copies[0])
    assert vendor_of(marks.maker) is vendor
    assert marks.gaps == ()
    reported = [set(copy.identities) for copy in copies]
    assert all(len(one) == len(recording.identities) for one in reported)
    assert len(set().union(*reported)) == 511 * len(recording.identities)
    assert all(one.isdisjoint(other) for one, other in pairwise(reported))
    assert json.dumps(copies[0][marks.system]) != json.dumps(copies[1][marks.system])
