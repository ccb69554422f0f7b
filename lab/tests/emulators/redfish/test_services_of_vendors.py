"""The same services at every vendor's BMC, each in its own way; no network."""

from __future__ import annotations

import asyncio
import base64
from ipaddress import IPv4Network
from typing import Any

import pytest

from clusterctl_lab.boot import BootTarget, first
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.profile import Paths, Problem, Profile, RefusedError
from clusterctl_lab.emulators.redfish.services.media import EJECT, INSERT
from clusterctl_lab.emulators.redfish.traits import BootRules, IfMatch, Mode
from clusterctl_lab.emulators.redfish.vendors import PROFILES
from clusterctl_lab.firmware import Component, Firmware
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import PASSWORD, QUICK, ask
from lab.tests.emulators.redfish.test_control import InstalledHosts, Netboots, play, settle

NEW = "another-one-1234"
IMAGE = "https://192.0.2.1/some.iso"
vendors = pytest.mark.parametrize("vendor", Vendor, ids=lambda vendor: vendor.value)


class Machine:
    """One machine of a vendor, with its BMC; writes are sent as this vendor wants them."""

    def __init__(self, vendor: Vendor) -> None:
        layout = Layout(IPv4Network("127.88.0.0/16"))
        self.profile: Profile = PROFILES[vendor]
        self.world = World(layout, {"node001": build(1, layout, PASSWORD, vendor=vendor)}, QUICK)
        self.world.provisioner, self.world.hosts = Netboots(), InstalledHosts()
        self.bmc = Bmc(self.world, "node001", self.profile)
        self.state = self.world.states["node001"]
        self.password = PASSWORD

    @property
    def paths(self) -> Paths:
        return self.profile.paths

    def ask(self, method: str, path: str, body: Any = None, **request: Any) -> Answer:
        basic = base64.b64encode(f"root:{self.password}".encode()).decode()
        return ask(self.bmc, method, path, body, authorization=f"Basic {basic}", **request)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, path
        return answer.body

    def patch(self, path: str, body: Any) -> Answer:
        wants_etag = self.profile.traits.if_match is IfMatch.REQUIRED
        etag = self.ask("GET", path).headers["ETag"] if wants_etag else ""
        return self.ask("PATCH", path, body, if_match=etag)

    def override(self, target: str) -> Answer:
        boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}
        if self.profile.traits.boot.mode is not Mode.READ_ONLY:
            boot["BootSourceOverrideMode"] = "UEFI"
        return self.patch(self.paths.boot_patch, {"Boot": boot})


@vendors
def test_the_password(vendor: Vendor) -> None:
    """Changed at the vendor's account, it is what logs in; the old one is not."""
    it = Machine(vendor)
    account = f"{it.paths.accounts}/{it.profile.traits.account_id}"
    assert it.get(account)["UserName"] == "root"
    assert it.patch(account, {"Password": NEW}).status == 200
    assert it.ask("GET", it.paths.system).status == 401
    it.password = NEW
    assert it.get(it.paths.system)


@vendors
def test_a_bios_attribute(vendor: Vendor) -> None:
    """Pending, then in force after the next boot."""

    async def scene() -> None:
        it = Machine(vendor)
        name, attribute = next((name, each) for name, each in it.profile.bios.items() if len(each.allowed) > 1)
        value = next(each for each in attribute.allowed if each != attribute.default)
        body: dict[str, Any] = {"Attributes": {name: value}}
        if it.profile.traits.bios_jobs:
            body["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
        assert it.patch(it.paths.bios_settings, body).status in (200, 202)
        assert it.get(it.paths.bios)["Attributes"][name] == attribute.default
        assert it.get(it.paths.bios_settings)["Attributes"][name] == value
        await it.world.set_power("node001", on=True)
        await settle()
        assert it.get(it.paths.bios)["Attributes"][name] == value
        assert it.world.machines["node001"].bios == ((name, value),)

    play(scene())


@vendors
def test_the_boot_order(vendor: Vendor) -> None:
    """All the system's boot options in another order are taken, and the machine boots by it."""
    it = Machine(vendor)
    order = it.get(it.paths.system)["Boot"]["BootOrder"]
    assert it.patch(it.paths.boot_patch, {"Boot": {"BootOrder": order[::-1]}}).status == 200
    assert it.state.boot_order == tuple(order[::-1])
    assert first(it.world.machines["node001"], it.state.boot_order) is BootTarget.HDD


@vendors
def test_every_override_that_is_offered_is_taken(vendor: Vendor) -> None:
    """Each target of the list, and the machine goes through a boot with it."""

    async def scene() -> None:
        it = Machine(vendor)
        for target in it.profile.traits.boot.targets:
            assert it.override(target).status == 200, target
            assert it.state.boot_target is BootTarget(target)
            await it.world.reboot("node001")
            await settle()
            assert it.state.running is not BootTarget(target).ends_there or target in ("Cd", "UsbCd")

    play(scene())


@vendors
def test_virtual_media(vendor: Vendor) -> None:
    """Each drive takes an image and ejects it; the machine boots from it on request."""

    async def scene() -> None:
        it = Machine(vendor)
        for drive in it.paths.media:
            assert it.ask("POST", f"{drive}/{INSERT}", {"Image": IMAGE}).status == 204
            assert it.get(drive)["Image"] == IMAGE
        assert it.override("Cd").status == 200
        await it.world.set_power("node001", on=True)
        await settle()
        assert (it.state.booted_from, it.state.running) == (BootTarget.CD, False)
        for drive in it.paths.media:
            assert it.ask("POST", f"{drive}/{EJECT}", {}).status == 204
            assert it.get(drive)["Inserted"] is False

    play(scene())


@vendors
def test_firmware(vendor: Vendor) -> None:
    """Where a push is offered the image is taken, its task found, and the version reported after the boot."""

    async def scene() -> None:
        it = Machine(vendor)
        if not it.paths.multipart_push:
            assert it.paths.simple_update
            return
        parts = {"UpdateParameters": b"{}", "UpdateFile": Firmware(Component.BIOS, "9.8.7").image()}
        accepted = it.ask("POST", it.paths.multipart_push, parts=parts)
        assert accepted.status == 202
        await settle()
        assert it.get(accepted.headers["Location"])["TaskState"] == "Pending"
        await it.world.set_power("node001", on=True)
        await settle()
        assert it.get(accepted.headers["Location"])["TaskState"] == "Completed"
        assert it.get(it.paths.system)["BiosVersion"] == "9.8.7"

    play(scene())


@pytest.mark.parametrize("vendor", [Vendor.DELL, Vendor.HPE], ids=lambda vendor: vendor.value)
def test_all_power_goes(vendor: Vendor) -> None:
    """An AC cycle ends sessions and leaves the machine off; another reset type is refused there."""

    async def scene() -> None:
        it = Machine(vendor)
        await it.world.set_power("node001", on=True)
        await settle()
        path, kind = it.paths.ac_cycle
        login = it.ask("POST", it.paths.sessions, {"UserName": "root", "Password": PASSWORD})
        token = login.headers["X-Auth-Token"]
        assert it.ask("POST", path, {"ResetType": "Sometimes"}).status == 400
        assert it.ask("POST", path, {"ResetType": kind}).status == 204
        await settle()
        assert not it.state.power
        assert ask(it.bmc, "GET", it.paths.system, token=token).status == 401

    play(scene())


@vendors
def test_logs_are_cleared(vendor: Vendor) -> None:
    """Each log that can be emptied is; the event log of the machine with it."""
    it = Machine(vendor)
    it.world.record("node001", "Critical", "words")
    for path in it.paths.clear_log:
        assert it.ask("POST", path, {}).status == 204
    assert it.state.sel == []


@vendors
def test_every_refusal_has_words(vendor: Vendor) -> None:
    """A status of its kind, a message with an id, and no placeholder left open."""
    for problem in Problem:
        status, body = PROFILES[vendor].refusal(RefusedError(problem, "one", "two"))
        (message, *_) = body["error"]["@Message.ExtendedInfo"]
        assert 400 <= status <= 599, problem
        assert message["MessageId"].count(".") >= 1, problem
        assert "{" not in message.get("Message", ""), problem


@vendors
def test_targets_are_ones_that_the_world_knows(vendor: Vendor) -> None:
    """So that no override of the list ends in a crash."""
    rules: BootRules = PROFILES[vendor].traits.boot
    assert {BootTarget(target).value for target in rules.targets} == set(rules.targets)


def test_bodies_that_are_no_object_crash_no_service() -> None:
    """Whatever is sent to whatever can be written to: a refusal in the vendor's words."""
    for vendor in Vendor:
        it = Machine(vendor)
        for method, path in list(it.bmc._writes):
            for raw in (b"[]", b"null", b'"x"', b"{", b'{"Boot": 1}', b'{"Attributes": []}', b'{"ResetType": {}}'):
                basic = base64.b64encode(f"root:{PASSWORD}".encode()).decode()
                answer = it.bmc.answer(Request(method, path, raw, authorization=f"Basic {basic}"))
                assert 200 <= answer.status < 600, (vendor, method, path, raw)
    asyncio.run(asyncio.sleep(0))
