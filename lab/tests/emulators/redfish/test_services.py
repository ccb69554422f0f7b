"""What can be written to an emulated BMC, and that it is real for the machine; no network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.dell import DELL
from clusterctl_lab.emulators.redfish.exchange import Answer
from clusterctl_lab.firmware import Component, Firmware
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import (
    BASIC,
    PASSWORD,
    RESET,
    SESSIONS,
    SYSTEM,
    ask,
    bmc_of,
    message_ids,
    world_of,
)
from lab.tests.emulators.redfish.test_control import booting_world, play, reset, settle

ROOT = "/redfish/v1"
ACCOUNT = f"{ROOT}/AccountService/Accounts/2"
BIOS = f"{SYSTEM}/Bios"
MANAGER = f"{ROOT}/Managers/iDRAC.Embedded.1"
JOBS = f"{MANAGER}/Oem/Dell/Jobs"
CD = f"{MANAGER}/VirtualMedia/CD"
PUSH = f"{ROOT}/UpdateService/MultipartUpload"
SIMPLE = f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"
IMAGE = "https://192.0.2.1/images/some.iso"
NEW = "another-password-1"


def log_in(bmc: Bmc, password: str) -> Answer:
    return ask(bmc, "POST", SESSIONS, {"UserName": "root", "Password": password}, authorization="")


def get(bmc: Bmc, path: str) -> Mapping[str, Any]:
    answer = ask(bmc, "GET", path)
    assert answer.status == 200
    assert answer.body is not None
    return answer.body


def boot(bmc: Bmc, **properties: Any) -> Answer:
    return ask(bmc, "PATCH", SYSTEM, {"Boot": properties})


def push(bmc: Bmc, firmware: Firmware | bytes, **parameters: Any) -> Answer:
    image = firmware.image() if isinstance(firmware, Firmware) else firmware
    parts = {"UpdateParameters": json.dumps(parameters).encode(), "UpdateFile": image}
    return ask(bmc, "POST", PUSH, parts=parts)


def state_of(bmc: Bmc, accepted: Answer) -> tuple[str, int, str]:
    task = get(bmc, accepted.headers["Location"])
    return task["TaskState"], task["PercentComplete"], task["Messages"][0]["Message"]


class TestAccounts:
    def test_the_new_password_is_what_logs_in(self) -> None:
        """A changed password takes effect at once, for sessions and Basic; open sessions stay; it is never shown."""
        bmc = bmc_of(world_of())
        token = log_in(bmc, PASSWORD).headers["X-Auth-Token"]
        assert ask(bmc, "PATCH", ACCOUNT, {"Password": NEW}).status == 200
        assert (log_in(bmc, PASSWORD).status, log_in(bmc, NEW).status) == (401, 201)
        assert ask(bmc, "GET", SYSTEM, authorization=BASIC).status == 401
        account = ask(bmc, "GET", ACCOUNT, token=token).body
        assert account is not None
        assert (account["UserName"], account["Password"]) == ("root", None)

    def test_it_stays_when_the_machine_is_healed(self) -> None:
        """A repaired fault brings the machine back as it was, but not an older password."""
        world = world_of()
        bmc = bmc_of(world)
        ask(bmc, "PATCH", ACCOUNT, {"Password": NEW})
        assert world.healthy["node001"].bmc.password == NEW
        asyncio.run(world.replace(world.healthy["node001"]))
        assert log_in(bmc, NEW).status == 201

    @pytest.mark.parametrize("password", ["", "x" * 41, 17, None, ["x"]])
    def test_a_refused_one_changes_nothing_and_is_not_repeated(self, password: Any) -> None:
        """Too long, empty or no text: a 400 that names the property."""
        bmc = bmc_of(world_of())
        answer = ask(bmc, "PATCH", ACCOUNT, {"Password": password})
        assert (answer.status, message_ids(answer)) == (400, ["PropertyValueError"])
        assert "xxx" not in str(answer.body)
        assert log_in(bmc, PASSWORD).status == 201

    def test_sixteen_slots(self) -> None:
        """Dell's accounts are fixed slots; only the one that is ours can be written."""
        bmc = bmc_of(world_of())
        members = get(bmc, f"{ROOT}/AccountService/Accounts")["Members"]
        users = [get(bmc, member["@odata.id"])["UserName"] for member in members]
        assert users == ["", "root", *[""] * 14]
        assert ask(bmc, "PATCH", f"{ROOT}/AccountService/Accounts/3", {"Password": NEW}).status == 405


class TestBoot:
    def test_the_order_is_what_boots(self) -> None:
        """With the disk first in the order no network boot happens; an unknown or short order is refused."""

        async def scene() -> None:
            world, netboots = booting_world()
            bmc = bmc_of(world)
            network, http, disk = get(bmc, SYSTEM)["Boot"]["BootOrder"]
            assert get(bmc, f"{SYSTEM}/BootOptions/{network}")["DisplayName"].startswith("PXE")
            assert boot(bmc, BootOrder=[disk]).status == 400
            assert boot(bmc, BootOrder=[disk, network, http]).status == 200
            assert get(bmc, SYSTEM)["Boot"]["BootOrder"] == [disk, network, http]
            reset(bmc, "On")
            await settle()
            assert (netboots.asked, world.states["node001"].running) == ([], True)

        play(scene())

    def test_a_disk_without_an_os_is_passed_over(self) -> None:
        """First in the order, it leads on to the network; as an override it does not."""

        async def scene() -> None:
            world, netboots = booting_world()
            world.hosts = None
            bmc = bmc_of(world)
            boot(bmc, BootOrder=sorted(get(bmc, SYSTEM)["Boot"]["BootOrder"], reverse=True))
            reset(bmc, "On")
            await settle()
            assert netboots.asked == ["node001"]
            boot(bmc, BootSourceOverrideTarget="Hdd", BootSourceOverrideEnabled="Once")
            reset(bmc, "ForceRestart")
            await settle()
            assert netboots.asked == ["node001"]

        play(scene())

    def test_uefi_http_boots_the_network_and_forgets_its_uri(self) -> None:
        """The URI is shown while the override is in force."""

        async def scene() -> None:
            world, netboots = booting_world()
            bmc = bmc_of(world)
            uri = "http://192.0.2.1/boot.efi"
            boot(bmc, BootSourceOverrideTarget="UefiHttp", BootSourceOverrideEnabled="Once", HttpBootUri=uri)
            assert get(bmc, SYSTEM)["Boot"]["HttpBootUri"] == uri
            reset(bmc, "On")
            await settle()
            assert netboots.asked == ["node001"]
            assert "HttpBootUri" not in get(bmc, SYSTEM)["Boot"]

        play(scene())

    @pytest.mark.parametrize("inserted", [True, False])
    def test_a_cd_boots_where_one_is_inserted(self, inserted: bool) -> None:
        """The machine boots the medium; without one it goes on with its order."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            if inserted:
                assert ask(bmc, "POST", f"{CD}/Actions/VirtualMedia.InsertMedia", {"Image": IMAGE}).status == 204
            boot(bmc, BootSourceOverrideTarget="Cd", BootSourceOverrideEnabled="Once")
            reset(bmc, "On")
            await settle()
            booted = world.states["node001"].booted_from
            assert booted is (BootTarget.CD if inserted else BootTarget.HDD)

        play(scene())


class TestMedia:
    def test_in_and_out(self) -> None:
        """What was inserted is shown until it is ejected; twice either way is refused in Dell's words."""
        bmc = bmc_of(world_of())
        insert, eject = (f"{CD}/Actions/VirtualMedia.{action}" for action in ("InsertMedia", "EjectMedia"))
        assert ask(bmc, "POST", insert, {"Image": IMAGE}).status == 204
        shown = get(bmc, CD)
        assert [shown[key] for key in ("Image", "ImageName", "Inserted", "ConnectedVia")] == [
            IMAGE,
            "some.iso",
            True,
            "URI",
        ]
        assert message_ids(ask(bmc, "POST", insert, {"Image": IMAGE})) == ["VRM0021"]
        assert ask(bmc, "POST", eject, {}).status == 204
        assert message_ids(ask(bmc, "POST", eject, {})) == ["VRM0009"]
        assert get(bmc, CD)["Image"] is None

    @pytest.mark.parametrize("image", ["", "nfs://192.0.2.1/some.iso", "https:///some.iso", "some.iso"])
    def test_only_http(self, image: str) -> None:
        """Nothing but the URL of an HTTP server goes in."""
        bmc = bmc_of(world_of())
        assert ask(bmc, "POST", f"{CD}/Actions/VirtualMedia.InsertMedia", {"Image": image}).status == 400
        assert not get(bmc, CD)["Inserted"]


class TestBios:
    CHANGE: ClassVar = {"ProcCStates": "Enabled"}
    AT_RESET: ClassVar = {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}

    def patch(self, bmc: Bmc, **more: Any) -> Answer:
        return ask(bmc, "PATCH", f"{BIOS}/Settings", {"Attributes": self.CHANGE, **more})

    def test_pending_until_the_job_ran_in_post(self) -> None:
        """A PATCH with an apply time makes a job; the next boot carries it out, and the machine has the new value."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            accepted = self.patch(bmc, **self.AT_RESET)
            assert accepted.status == 202
            assert state_of(bmc, accepted)[0] == "Pending"
            assert get(bmc, f"{BIOS}/Settings")["Attributes"] == self.CHANGE
            assert get(bmc, BIOS)["Attributes"]["ProcCStates"] == "Disabled"
            reset(bmc, "On")
            await settle()
            assert get(bmc, f"{BIOS}/Settings")["Attributes"] == {}
            assert get(bmc, BIOS)["Attributes"]["ProcCStates"] == "Enabled"
            assert state_of(bmc, accepted)[:2] == ("Completed", 100)
            assert world.machines["node001"].bios == tuple(self.CHANGE.items())
            (job,) = get(bmc, JOBS)["Members"]
            assert get(bmc, job["@odata.id"])["JobState"] == "Completed"

        play(scene())

    def test_without_a_job_nothing_happens(self) -> None:
        """Dell's pending values wait for a job, however often one boots; a POST to the queue makes it."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            assert self.patch(bmc).status == 200
            reset(bmc, "On")
            await settle()
            assert get(bmc, BIOS)["Attributes"]["ProcCStates"] == "Disabled"
            assert ask(bmc, "POST", JOBS, {"TargetSettingsURI": f"{BIOS}/Settings"}).status == 202
            reset(bmc, "ForceRestart")
            await settle()
            assert get(bmc, BIOS)["Attributes"]["ProcCStates"] == "Enabled"

        play(scene())

    def test_a_pending_job_blocks_until_it_is_deleted(self) -> None:
        """SYS011 to a further change; DeleteJobQueue takes the job away, and the boot after it changes nothing."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            self.patch(bmc, **self.AT_RESET)
            assert message_ids(self.patch(bmc)) == ["SYS011"]
            clear = f"{MANAGER}/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue"
            assert ask(bmc, "POST", clear, {"JobID": "JID_CLEARALL"}).status == 200
            reset(bmc, "On")
            await settle()
            assert world.machines["node001"].bios == ()
            assert get(bmc, JOBS)["Members"] == []

        play(scene())

    @pytest.mark.parametrize(
        ("attributes", "message"),
        [
            ({"NoSuchThing": "Enabled"}, "PropertyUnknown"),
            ({"ProcCStates": "Sometimes"}, "PropertyValueNotInList"),
            ({"AcPwrRcvryUserDelay": "120"}, "PropertyValueNotInList"),
            ({"AcPwrRcvryUserDelay": True}, "PropertyValueNotInList"),
        ],
    )
    def test_refused_as_a_whole(self, attributes: dict[str, Any], message: str) -> None:
        """One wrong attribute, and none is pending."""
        bmc = bmc_of(world_of())
        answer = ask(bmc, "PATCH", f"{BIOS}/Settings", {"Attributes": {**self.CHANGE, **attributes}})
        assert (answer.status, message_ids(answer)) == (400, [message])
        assert get(bmc, f"{BIOS}/Settings")["Attributes"] == {}

    def test_a_vendor_without_jobs_applies_at_the_next_boot(self) -> None:
        """Where the profile has no jobs a PATCH is all that is needed."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = Bmc(world, "node001", replace(DELL, traits=replace(DELL.traits, bios_jobs=False)))
            assert self.patch(bmc).status == 200
            reset(bmc, "On")
            await settle()
            assert get(bmc, BIOS)["Attributes"]["ProcCStates"] == "Enabled"

        play(scene())


class TestUpdates:
    def test_a_bios_image_waits_for_the_boot(self) -> None:
        """The task runs, is scheduled, and is complete after the boot from which the new version is reported."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            accepted = push(bmc, Firmware(Component.BIOS, "2.4.0", "PowerEdge XE9680"))
            assert accepted.status == 202
            assert state_of(bmc, accepted)[0] == "Running"
            await settle()
            assert state_of(bmc, accepted) == ("Pending", 0, "Task successfully scheduled.")
            assert get(bmc, SYSTEM)["BiosVersion"] == "2.1.3"
            reset(bmc, "On")
            await settle()
            assert state_of(bmc, accepted)[:2] == ("Completed", 100)
            assert get(bmc, SYSTEM)["BiosVersion"] == "2.4.0"
            inventory = get(bmc, f"{ROOT}/UpdateService/FirmwareInventory")["Members"]
            assert any("159-2.4.0__BIOS" in member["@odata.id"] for member in inventory)

        play(scene())

    def test_immediate_reboots_what_runs(self) -> None:
        """With the apply time Immediate the BMC restarts the machine itself; every HCA has the new version."""

        async def scene() -> None:
            world, _ = booting_world()
            reported: list[str] = []

            async def changed(machine: Any) -> None:
                reported.append(machine.hcas[0].firmware)

            world.on_change(changed)
            bmc = bmc_of(world)
            reset(bmc, "On")
            await settle()
            push(bmc, Firmware(Component.HCA, "28.43.1014"), **{"@Redfish.OperationApplyTime": "Immediate"})
            await settle()
            assert {hca.firmware for hca in world.machines["node001"].hcas} == {"28.43.1014"}
            assert (world.states["node001"].boots, reported) == (2, ["28.43.1014"])

        play(scene())

    def test_the_bmc_s_own_image_restarts_the_bmc(self) -> None:
        """The new version is reported after the BMC's restart, which ends all sessions and touches no machine."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            token = log_in(bmc, PASSWORD).headers["X-Auth-Token"]
            push(bmc, Firmware(Component.BMC, "7.10.50.00"))
            await settle()
            assert ask(bmc, "GET", SYSTEM, token=token).status == 401
            assert get(bmc, MANAGER)["FirmwareVersion"] == "7.10.50.00"
            assert world.states["node001"].boots == 0

        play(scene())

    @pytest.mark.parametrize(
        ("image", "words"),
        [
            (b"MZ nonsense", "no firmware image"),
            (b'{"clusterctl-lab-firmware": 2}\n', "format 2"),
            (Firmware(Component.BIOS, "9.9", "PowerEdge R750").image(), "The image is for PowerEdge R750."),
        ],
    )
    def test_a_wrong_image_fails_and_flashes_nothing(self, image: bytes, words: str) -> None:
        """The task ends in an exception that gives the reason."""

        async def scene() -> None:
            world, _ = booting_world()
            bmc = bmc_of(world)
            accepted = push(bmc, image)
            await settle()
            state, _, message = state_of(bmc, accepted)
            assert (state, words in message) == ("Exception", True)
            reset(bmc, "On")
            await settle()
            assert world.machines["node001"].bios_version == "2.1.3"

        play(scene())

    def test_simple_update_fetches(self) -> None:
        """The image comes from its URL; one that cannot be had fails the task in the fetcher's words."""

        async def fetch(url: str) -> bytes:
            if url.endswith("gone"):
                raise EdgeError("The image cannot be fetched: HTTP 404.")
            return Firmware(Component.BMC, "7.20").image(size=4096)

        async def scene() -> None:
            world, _ = booting_world()
            bmc = Bmc(world, "node001", DELL, fetch=fetch)
            good, gone = (ask(bmc, "POST", SIMPLE, {"ImageURI": f"http://192.0.2.1/{name}"}) for name in ("is", "gone"))
            await settle()
            assert state_of(bmc, good)[0] == "Completed"
            assert state_of(bmc, gone) == ("Exception", 0, "The image cannot be fetched: HTTP 404.")
            assert world.machines["node001"].bmc.firmware == "7.20"

        play(scene())

    def test_what_is_no_update_is_refused(self) -> None:
        """Missing parts, another scheme, an unknown apply time."""
        bmc = bmc_of(world_of())
        assert message_ids(ask(bmc, "POST", PUSH, {})) == ["MissingOrMalformedPart"]
        assert ask(bmc, "POST", SIMPLE, {"ImageURI": "ftp://192.0.2.1/x"}).status == 400
        answer = push(bmc, b"x", **{"@Redfish.OperationApplyTime": "Yesterday"})
        assert message_ids(answer) == ["PropertyValueNotInList"]


def test_a_restart_of_the_bmc_ends_sessions() -> None:
    """Manager.Reset is answered first; then no session is left. The machine goes on."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        reset(bmc, "On")
        await settle()
        token = log_in(bmc, PASSWORD).headers["X-Auth-Token"]
        answer = ask(bmc, "POST", f"{MANAGER}/Actions/Manager.Reset", {"ResetType": "GracefulRestart"}, token=token)
        assert answer.status == 204
        await settle()
        assert ask(bmc, "GET", SYSTEM, token=token).status == 401
        assert world.states["node001"].power

    play(scene())


def test_the_lifecycle_controller_is_not_ready_in_post() -> None:
    """GetRemoteServicesAPIStatus follows the machine: off, in POST, out of it."""

    async def scene() -> None:
        world: World
        world, _ = booting_world()
        bmc = bmc_of(world)
        question = f"{MANAGER}/Oem/Dell/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus"

        def reported() -> tuple[str, str]:
            body = ask(bmc, "POST", question, {}).body
            assert body is not None
            return body["ServerStatus"], body["Status"]

        seen = [reported()]
        world.states["node001"].power = world.states["node001"].posting = True
        seen.append(reported())
        world.states["node001"].posting = False
        seen.append(reported())
        assert seen == [("PoweredOff", "Ready"), ("InPOST", "NotReady"), ("OutOfPOST", "Ready")]

    play(scene())


def test_what_a_vendor_has_not_is_not_there() -> None:
    """A profile without these paths answers 404 or 405, and nothing else changes."""
    bare = replace(DELL.paths, accounts="", bios_settings="", media=(), multipart_push="", simple_update="", jobs="")
    bmc = Bmc(world_of(), "node001", replace(DELL, paths=bare))
    assert ask(bmc, "PATCH", ACCOUNT, {"Password": NEW}).status == 405
    assert ask(bmc, "POST", PUSH, {}).status == 404
    assert ask(bmc, "POST", RESET, {"ResetType": "ForceOff"}).status == 409
