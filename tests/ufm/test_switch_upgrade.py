"""New software for switches: waves of an emulated UFM, proven before the next one, and nothing is ordered twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ufm import UfmApi, UfmConnection
from clusterctl.fleet.errors import ConflictError, OutcomeUnknownError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.alarms import ManagedSystem
from clusterctl.fleet.fabric.manager_jobs import ManagerJob
from clusterctl.fleet.fabric.topology import DeviceKind, Link
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.fabric import FabricMasterSeen
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.operation import Control, Event, Result
from clusterctl.operations.switch_upgrade import SwitchServices, SwitchSoftware, UpgradeRequest
from clusterctl.ports import Deadline
from clusterctl.ports.fabric import SwitchImage
from clusterctl.steps.cable.link_health import counting_since
from clusterctl_cli.main import run as command
from tests.cli.nights import FakeScheduler
from tests.fake_timer import FakeTimer
from tests.formats.infiniband import printers
from tests.ufm.emulator import TOKEN, Ufm, served
from tests.ufm.test_api import site
from tests.ufm.test_firmware import watched_again
from tests.ufm.watch_world import Killed, SiteAdapters, Tools, Watched, fat_tree, watched

TREE = fat_tree(3, 2, 1)
NAMES = ("node0001", "node0002", "node0003")
OLD, NEW = "3.11.4002", "3.12.2002"
PASSWORD = "image-server-7f31c4"
IMAGE = SwitchImage(
    protocol="scp", server="10.0.0.9", user="images", password=PASSWORD, path="/images", name="onyx-3.12.2002.img"
)
GUIDS = {one.description: guid for guid, one in TREE.devices.items() if one.kind is DeviceKind.SWITCH}
NAME_OF = {guid: name for name, guid in GUIDS.items()}
SECTION = """\
  switch_software:
    {act: true, server: 10.0.0.9, user: images, password: {file: secrets/images}, path: /images, images: {"3.12.2002": onyx.img}}
"""
REQUEST = UpgradeRequest(to=NEW, reason="CVE of the month", at_once=2)


def system(name: str, software: str = OLD, **other: Any) -> dict[str, Any]:
    """A switch as a real UFM answered (IBM CAST, docs of its inventory collection): capabilities, software, serial."""
    return {
        "guid": str(GUIDS[name]),
        "system_guid": str(GUIDS[name]),
        "system_name": name,
        "type": "switch",
        "model": "MQM9700",
        "fw_version": "31.2012.1024",
        "sw_version": f"{software}-X86_64",
        "capabilities": ["ssh", "sysinfo", "reboot", "mirroring", "sw_upgrade", "Provisioning"],
        "modules": [{"type": "SYSTEM", "serial_number": f"MT-{name}", "status": "OK"}],
        **other,
    }


@dataclass
class Switches:
    """A UFM with the tree's switches, which load for a minute and are away for two after an order.

    stay     load, and restart once they are rebooted only
    broken   end their job with errors, and keep their software
    lame     come back without their first link: of a leaf, that of its host
    noisy    come back with a link that has errors
    """

    site: Watched
    ufm: Ufm = field(default_factory=Ufm)
    scheduler: FakeScheduler = field(default_factory=lambda: FakeScheduler(NAMES))
    stay: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    lame: set[str] = field(default_factory=set)
    noisy: set[str] = field(default_factory=set)
    lost: bool = False
    events: list[str] = field(default_factory=list)
    together: list[tuple[str, ...]] = field(default_factory=list)
    pace: Callable[[int], int] | None = None
    _busy: dict[str, tuple[str, str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ufm.systems = [system(name) for name in GUIDS]
        self.ufm.on_order = self.ordered

    def ordered(self, order: dict[str, Any], job: str) -> None:
        (guid,) = order["object_ids"]
        self._busy[NAME_OF[Guid(guid)]] = (order["action"], job, 0.0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for fabric and switches, in steps of at most 15 seconds."""
        while seconds > 0:
            step = min(seconds, 15.0)
            seconds -= step
            self.site.world.pass_time(step / 60)
            for name, (action, job, age) in list(self._busy.items()):
                self._busy[name] = (action, job, age + step)
                self._one(name, action, job, age + step)
            away = tuple(name for name in GUIDS if self._links(name) and not self._up(name))
            if away and (not self.together or self.together[-1] != away):
                self.together.append(away)

    def _one(self, name: str, action: str, job: str, age: float) -> None:
        stays = action == "sw_upgrade" and name in self.stay
        if age >= 60 and name in self.broken:
            self._end(job, "Completed With Errors", f"{name}: no space left on device")
        elif age >= 60 and stays:
            self._end(job, "Completed")
        elif 60 <= age < 180:
            self._end(job, "Completed")
            self.site.world.disabled |= {link.a for link in self._links(name)}
        elif age >= 180:
            kept = {self._links(name)[0].a} if name in self.lame else set()
            self.site.world.disabled -= {link.a for link in self._links(name)} - kept
            self.site.world.sick |= {self._links(name)[-1]} if name in self.noisy else set()
            at = next(one for one in self.ufm.systems if one["system_name"] == name)
            at["sw_version"] = f"{NEW}-X86_64"
        if age >= 180 or (name in self.broken and age >= 60) or (stays and age >= 60):
            del self._busy[name]

    def _end(self, job: str, status: str, summary: str = "") -> None:
        self.ufm.jobs[job] = [{**self.ufm.jobs[job][0], "Status": status, "Progress": 100, "Summary": summary}]

    def _links(self, name: str) -> list[Link]:
        return [link for link in TREE.links if GUIDS[name] in (link.a.guid, link.b.guid)]

    def _up(self, name: str) -> bool:
        return any(link.a not in self.site.world.disabled for link in self._links(name))

    def ordered_by_name(self) -> list[tuple[str, str]]:
        return [(one["action"], NAME_OF[Guid(one["object_ids"][0])]) for one in self.ufm.orders]

    def process(self, act: Callable[[SwitchSoftware], Any]) -> Any:
        """Do something in a process of its own."""
        context, outside = self.site.opened(), Outside(Tools(self.site.world), scheduler=self.scheduler)
        context = replace(context, connect=lambda _site, _access: cast("Adapters", outside))
        clock = self.site.world.clock
        with served(self.ufm) as url, closing(UfmApi(UfmConnection(url=url, token=TOKEN), clock)) as api:
            seams = Seams(self, api)
            services = SwitchServices(systems=seams, jobs=seams, updater=seams, image=IMAGE, pace=self.pace)
            try:
                return act(SwitchSoftware(context, services, WorldTimer(self)))
            finally:
                context.journal.close()

    def upgraded(self, request: UpgradeRequest = REQUEST) -> Result:
        def approved(software: SwitchSoftware) -> Result:
            control = Control(software.preview(request).digest, self.on_event)
            return software.run(request, control)

        found: Result = self.process(approved)
        return found

    def on_event(self, event: Event) -> None:
        self.events.append(f"{event.node}: {event.failure or event.text}")


@dataclass
class Seams:
    """The real client of the emulated UFM; each order is a call at which the process may end."""

    switches: Switches
    api: UfmApi

    def systems(self, deadline: Deadline) -> Observed[tuple[ManagedSystem, ...]]:
        return self.api.systems(deadline)

    def jobs(self, deadline: Deadline, parent: str = "") -> Observed[tuple[ManagerJob, ...]]:
        return self.api.jobs(deadline, parent)

    def job(self, id_: str, deadline: Deadline) -> Observed[ManagerJob]:
        return self.api.job(id_, deadline)

    def upgrade(self, switch: Guid, image: SwitchImage, deadline: Deadline) -> str:
        with self.switches.site.world.call():
            self.switches.ufm.dropped, self.switches.lost = self.switches.lost, False
            return self.api.upgrade(switch, image, deadline)

    def reboot(self, switch: Guid, deadline: Deadline) -> str:
        with self.switches.site.world.call():
            return self.api.reboot(switch, deadline)


class WorldTimer(FakeTimer):
    """Time that passes in the world, too."""

    def __init__(self, switches: Switches) -> None:
        super().__init__()
        self._switches = switches

    def advance(self, seconds: float = 1e6) -> None:
        super().advance(seconds)
        self._switches.pass_time(seconds)


@dataclass
class Outside(SiteAdapters):
    scheduler: FakeScheduler | None = None


@pytest.fixture
def switches(tmp_path: Path) -> Switches:
    made = watched(tmp_path / "site", TREE)
    rows = [f"{name},10.0.0.{at},SN-{name},A01,{at}" for at, name in enumerate(NAMES, start=1)]
    (made.folder / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    text = (made.folder / "site.yml").read_text()
    (made.folder / "site.yml").write_text(text.replace("\nfabric:\n", f"\nfabric:\n{SECTION}"))
    return Switches(watched_again(made))


def written(switches: Switches, name: str) -> list[str]:
    context = switches.site.opened()
    payloads = [event.payload for event in context.journal.history(Stream.FABRIC, str(GUIDS[name]))]
    context.journal.close()
    return [
        f"intent {one.target}" if isinstance(one, ActIntended) else one.result.value
        for one in payloads
        if isinstance(one, ActIntended | ActObserved)
    ]


def test_waves_of_a_healthy_fabric(switches: Switches) -> None:
    """One spine alone, then few at once; hosts behind a leaf have no jobs meanwhile; each switch is ordered once."""
    result = switches.upgraded()
    assert (result.exit_code, result.stopped, dict(result.skipped)) == (0, "", {})
    assert [name for _, name in switches.ordered_by_name()] == ["spine-1", "spine-2", "leaf-1", "leaf-2", "leaf-3"]
    assert switches.together == [("spine-1",), ("leaf-1", "spine-2"), ("leaf-2",), ("leaf-3",)]
    assert {one["sw_version"] for one in switches.ufm.systems} == {f"{NEW}-X86_64"}
    assert result.outcomes[0].text == f"runs {NEW}; its 6 links had no errors in 120 s"
    assert written(switches, "leaf-1") == [f"intent {NEW}", f"intent {NEW}", "done"]
    taken = [names for what, names in switches.scheduler.calls if what == "take"]
    assert taken == [("node0001",), ("node0002",), ("node0003",)]
    assert switches.scheduler.reasons == {}
    assert switches.upgraded().outcomes == ()  # all of them run it


def test_nothing_without_the_sites_word(switches: Switches) -> None:
    """A site without `act: true` gets the preview and the waves as they are now, and no order."""
    file = switches.site.folder / "site.yml"
    file.write_text(file.read_text().replace("{act: true, server", "{server"))
    switches.site = watched_again(switches.site)
    waves, refusals = switches.process(lambda one: one.waves(REQUEST))
    assert waves == (("spine-1",), ("spine-2", "leaf-1"), ("leaf-2",), ("leaf-3",))
    assert refusals == {}
    with pytest.raises(UsageError, match="does not let clusterctl update switches"):
        switches.upgraded()
    assert (switches.ufm.orders, switches.scheduler.calls) == ([], [])


def test_the_order_and_its_secret(switches: Switches, tmp_path: Path) -> None:
    """UFM gets the documented action; the password of the image server is in no event, message or file."""
    switches.broken = {"spine-1"}
    result = switches.upgraded()
    (order,) = switches.ufm.orders
    assert (order["action"], order["object_type"], order["identifier"]) == ("sw_upgrade", "System", "id")
    assert order["params"] == {
        "username": "images",
        "password": PASSWORD,
        "path": "/images",
        "image": "onyx-3.12.2002.img",
        "protocol": "scp",
        "server": "10.0.0.9",
    }
    assert PASSWORD not in repr((result, switches.events, IMAGE))
    assert all(PASSWORD.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_refusal_shows_no_password(switches: Switches) -> None:
    """UFM repeats what it was given; the message has a mask there, the act has failed, and nothing more begins."""
    switches.ufm.systems[-1]["capabilities"] = ["Provisioning"]

    def refuse(software: SwitchSoftware) -> Result:
        control = Control(None, switches.on_event)
        switches.ufm.systems = [{**one, "capabilities": ["sw_upgrade"]} for one in switches.ufm.systems]
        switches.ufm.act = lambda body: (400, f"bad: {body['params']}")  # type: ignore[method-assign]
        return software.run(REQUEST, control)

    result = switches.process(refuse)
    assert "UFM refuses (HTTP 400)" in str(result.outcomes[0].failure)
    assert PASSWORD not in repr(result)
    assert written(switches, "spine-1") == [f"intent {NEW}", "failed"]
    assert (result.stopped, switches.ufm.orders) == ("1 of 1 switches failed: 4 others keep their software", [])


def test_hosts_with_jobs_keep_their_leaf(switches: Switches) -> None:
    """A leaf with a busy host is left alone, and so is one whose host got a job between the look and the drain."""
    switches.scheduler.busy = {"node0002"}
    switches.scheduler.gets_work = {"node0003"}
    result = switches.upgraded()
    assert result.skipped["leaf-2"] == "node0002 is behind it: the scheduler reports it as allocated"
    assert result.skipped["leaf-3"].startswith("node0003 is behind it: ")
    assert sorted(name for _, name in switches.ordered_by_name()) == ["leaf-1", "spine-1", "spine-2"]
    assert (result.exit_code, switches.scheduler.reasons) == (1, {})


def test_the_master_stays(switches: Switches) -> None:
    """The leaf of the master subnet manager is left alone; hand it over first."""
    adapter = next(guid for guid, one in TREE.devices.items() if one.description.startswith("node0003"))
    context = switches.site.opened()
    context.journal.append([NewEvent(Stream.FABRIC, "master", FabricMasterSeen(guid=adapter, lid=3, priority=14))])
    context.journal.close()
    result = switches.upgraded()
    assert "hand it over" in result.skipped["leaf-3"]
    assert len(switches.ufm.orders) == 4


@pytest.mark.parametrize("trouble", ["broken", "lame", "noisy"])
def test_a_canary_that_fails_stops_it(switches: Switches, trouble: str) -> None:
    """Errors of its job, a link that does not come back, and errors on a link: no other switch is touched."""
    setattr(switches, trouble, {"spine-1"})
    result = switches.upgraded()
    cause = str(result.outcomes[0].failure)
    assert {
        "broken": "UFM's job 41 ended with errors: spine-1: no space left on device",
        "lame": "its links did not all come back in time",
        "noisy": "16 symbol errors",
    }[trouble] in cause
    assert result.stopped == "1 of 1 switches failed: 4 others keep their software"
    assert (result.exit_code, len(switches.ufm.orders)) == (1, 1)
    assert written(switches, "spine-1")[-1] == "failed"


def test_a_share_of_failures(switches: Switches) -> None:
    """Later switches may fail up to the share; hosts behind a leaf that is not back stay without jobs, and are named."""
    switches.lame = {"leaf-1"}
    result = switches.upgraded(replace(REQUEST, stop_percent=40.0))
    assert (result.stopped, len(switches.ufm.orders)) == ("", 5)
    assert result.skipped == {"node0001": "it is still without jobs: leaf-1 is not back"}
    assert list(switches.scheduler.reasons) == ["node0001"]
    switches.site.world.disabled.clear()
    assert switches.upgraded(replace(REQUEST, stop_percent=40.0)).skipped == {}
    assert switches.scheduler.reasons == {}


def test_a_switch_that_does_not_restart(switches: Switches) -> None:
    """It has the software, and waits for its reboot: that is ordered once, after the time in which UFM may do it."""
    switches.stay = {"spine-1"}
    result = switches.upgraded(replace(REQUEST, switches=("spine-1",)))
    assert result.exit_code == 0
    assert switches.ordered_by_name() == [("sw_upgrade", "spine-1"), ("reboot", "spine-1")]


def test_another_switch_in_its_place(switches: Switches) -> None:
    """A serial that has changed since the approval: nothing is ordered."""

    def swapped(software: SwitchSoftware) -> Result:
        return software.run(REQUEST, Control(software.preview(REQUEST).digest, exchange))

    def exchange(event: Event) -> None:
        if event.text.startswith("wave 0"):
            for one in switches.ufm.systems:
                one["modules"][0]["serial_number"] = "MT-other"

    result = switches.process(swapped)
    assert "UFM has serial MT-other" in str(result.outcomes[0].failure)
    assert switches.ufm.orders == []
    assert written(switches, "spine-1") == []


def test_what_ufm_cannot_update(switches: Switches) -> None:
    """Switches without an operating system, without a serial, and those that UFM does not have are named; so are unknown
    models and an approval of something else.
    """
    by_name = {one["system_name"]: one for one in switches.ufm.systems}
    by_name["leaf-1"] |= {"capabilities": ["Provisioning"], "sw_version": "N/A"}
    by_name["leaf-2"]["modules"] = []
    switches.ufm.systems.remove(by_name["leaf-3"])
    preview = switches.process(lambda one: one.preview(REQUEST))
    assert dict(preview.skipped) == {
        "leaf-1": "UFM cannot update it: it has no operating system that UFM may log in to",
        "leaf-2": "UFM does not have its serial and its software",
        "leaf-3": "UFM does not have it",
    }
    assert [effect.node for effect in preview.effects] == ["spine-1", "spine-2"]
    with pytest.raises(ConflictError):
        switches.process(lambda one: one.run(replace(REQUEST, reason="another"), Control(preview.digest)))
    by_name["spine-2"]["model"] = "MQM9790"
    with pytest.raises(UsageError, match="of 2 models"):
        switches.process(lambda one: one.preview(REQUEST))
    assert switches.ufm.orders == []


def test_a_lost_answer_to_an_order(switches: Switches) -> None:
    """UFM took it: its job is found, and nothing is ordered again."""
    switches.lost = True
    result = switches.upgraded(replace(REQUEST, switches=("spine-1",)))
    assert (result.exit_code, switches.ordered_by_name()) == (0, [("sw_upgrade", "spine-1")])
    assert "spine-1: job 41 of UFM" in switches.events


def test_a_busy_subnet_manager(switches: Switches) -> None:
    """The waves wait until it is idle; where it stays busy, they are smaller."""
    switches.pace = lambda at_most: max(1, at_most // 4)
    result = switches.upgraded(replace(REQUEST, at_once=4, switches=("spine-*",)))
    assert result.exit_code == 0
    assert [one for one in switches.together if len(one) > 1] == []
    assert any("waits until the subnet manager is idle" in one for one in switches.events)


def test_the_watch_blames_no_link_for_it(switches: Switches) -> None:
    """Counters of links of a switch that restarted count from the end of that on; while it is away, they do not."""
    context = switches.site.opened()
    assert counting_since(context.journal) == {}
    context.journal.close()
    switches.upgraded(replace(REQUEST, switches=("spine-1",)))
    context = switches.site.opened()
    since = counting_since(context.journal)
    (ended,) = {
        event.at
        for event in context.journal.latest(Stream.FABRIC, Kind.ACT_OBSERVED)
        if event.subject == GUIDS["spine-1"]
    }
    context.journal.close()
    assert set(since.values()) == {ended}
    assert len(since) == 12


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_point(switches: Switches, after: bool) -> None:
    """The process ends before, or right after, each reading, write and order: the next run finishes it, no switch is
    ordered twice, and no host stays without jobs.
    """
    request = replace(REQUEST, switches=("spine-1", "leaf-1"))
    world, at, finished = switches.site.world, 0, False
    while not finished:
        at += 1
        forget(switches)
        fresh = Switches(switches.site, scheduler=FakeScheduler(NAMES))
        world.calls, world.kill_at, world.kill_after = 0, at, after
        try:
            fresh.upgraded(request)
            finished = True
        except Killed:
            world.kill_at = -1
            world.clock.at += timedelta(minutes=30)  # a dead run's claims lapse
            codes = [fresh.upgraded(request).exit_code, fresh.upgraded(request).exit_code]
            assert codes in ([0, 0], [1, 0]), at  # an order that was never sent fails first; the next command sends it
        counted = Counter(fresh.ordered_by_name())
        assert counted == {("sw_upgrade", name): 1 for name in ("spine-1", "leaf-1")}, at
        assert (fresh.scheduler.reasons, world.disabled) == ({}, set()), at
    assert at > 40


def forget(switches: Switches) -> None:
    """Begin with an empty journal."""
    for file in switches.site.folder.glob("watch.db*"):
        file.unlink()


def test_the_action_by_the_api() -> None:
    """The job's number is in Location or in the text; an answer without one may have been taken."""
    ufm = Ufm(systems=[system("leaf-1")])
    with served(ufm) as url, closing(UfmApi(UfmConnection(url=url, token=TOKEN), CLOCK)) as api:
        assert api.upgrade(GUIDS["leaf-1"], IMAGE, Deadline.after(60)) == "41"
        assert api.reboot(GUIDS["leaf-1"], Deadline.after(60)) == "42"
        ufm.act = lambda _body: (200, "done")  # type: ignore[method-assign]
        with pytest.raises(OutcomeUnknownError, match="names no job"):
            api.reboot(GUIDS["leaf-1"], Deadline.after(60))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run prints switches and waves; without `act: true` it is one, and a version without an image is exit code 2."""
    (tmp_path / "net.txt").write_text(printers.ibnetdiscover(TREE))
    with served(Ufm(systems=[system(name) for name in GUIDS])) as url:
        folder = site(tmp_path / "site", url)
        (folder / "secrets" / "images").write_text(PASSWORD)
        (folder / "secrets" / "images").chmod(0o600)
        text, section = (folder / "site.yml").read_text(), SECTION.replace("act: true", "act: false")
        text = re.sub(r"(?m)^  (ibnetdiscover|sminfo): .*$", "", text)
        reader = f"  ibnetdiscover: [cat, {tmp_path / 'net.txt'}]\n"
        (folder / "site.yml").write_text(text.replace("\nfabric:\n", f"\nfabric:\n{reader}{section}"))
        words = ["fabric", "upgrade", "spine-*", "--reason", "CVE", "--site", str(folder)]
        assert command([*words, "--to", NEW, "--yes"]) == 0
        shown = capsys.readouterr()
        assert "nothing is changed: fabric.switch_software has no act: true" in shown.err
        assert "canary: spine-1\nwave 1: spine-2" in shown.err
        assert f"software {OLD} to {NEW} (serial MT-spine-1)" in shown.out + shown.err
        assert command([*words, "--to", "3.99.1", "--dry-run"]) == 2
        assert "the site has no image of 3.99.1" in capsys.readouterr().err
