"""The lab's lock, control socket, messages and settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UnreachableError, UsageError
from clusterctl_lab import control
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.healthy import build
from clusterctl_lab.hosts.sysctls import restore_limits
from clusterctl_lab.layout import Layout
from clusterctl_lab.lock import LabLock, holder
from clusterctl_lab.machine import Machine
from clusterctl_lab.messages import Message, error_message, raise_error
from clusterctl_lab.removal import check_owner, require_near
from clusterctl_lab.requests import Requests, boot_stage
from clusterctl_lab.running_lab import RunningLab
from clusterctl_lab.settings import LabSettings
from clusterctl_lab.state import MachineState


async def echo(request: Message) -> Message:
    if request["do"] == "fail":
        raise UsageError("no", where="here", remedy="do not")
    if request["do"] == "break":
        raise KeyError("inside")
    return {"received": request["do"]}


def answer(folder: Path, *requests: Message) -> list[Message | ClusterctlError]:
    """What a served lab answers to each, asked from a thread as the command line would."""

    def one(request: Message) -> Message | ClusterctlError:
        try:
            return control.ask(folder / "control", "lab", request)
        except ClusterctlError as error:
            return error

    async def scenario() -> list[Message | ClusterctlError]:
        server = await control.serve(folder / "control", echo)
        assert stat.S_IMODE((folder / "control").stat().st_mode) == 0o600
        answers = [await asyncio.to_thread(one, request) for request in requests]
        server.close()
        return answers

    return asyncio.run(scenario())


def test_answers_and_errors_cross_the_socket(tmp_path: Path) -> None:
    """An error arrives in its own class with all its words, and the lab goes on answering after it."""
    received, refused, broke, again = answer(tmp_path, {"do": "a"}, {"do": "fail"}, {"do": "break"}, {"do": "b"})
    assert (received, again) == ({"received": "a"}, {"received": "b"})
    assert isinstance(refused, UsageError)
    assert (refused.message, refused.where, refused.remedy) == ("no", "here", "do not")
    assert isinstance(broke, ClusterctlError)
    assert "KeyError" in broke.message


def test_a_lab_that_does_not_run_is_reported(tmp_path: Path) -> None:
    """Neither a missing socket nor a dead one is taken for an answer."""
    for _ in range(2):
        with pytest.raises(UsageError, match="no lab named lab is running"):
            control.ask(tmp_path / "control", "lab", {"do": "status"})
        answer(tmp_path)  # leaves its socket behind, as a killed daemon does


def test_every_error_keeps_its_exit_code_on_the_way() -> None:
    """The command line exits as if it had failed itself."""
    for error in (UsageError("u"), EnvironmentBrokenError("e"), UnreachableError("x"), ClusterctlError("c")):
        with pytest.raises(type(error)) as caught:
            raise_error(error_message(error))
        assert caught.value.exit_code == error.exit_code


def test_lock_is_held_by_one_and_free_again_when_its_holder_dies(tmp_path: Path) -> None:
    """Also when the holder is killed, and as long as a child that inherited it lives."""
    path = tmp_path / "run/lab.lock"
    lock = LabLock.take(path)
    assert lock is not None
    lock.write_holder(os.getpid())
    assert LabLock.take(path) is None
    assert holder(path) == os.getpid()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.descriptor])
    lock.close()
    assert LabLock.take(path) is None
    child.kill()
    child.communicate()
    again = LabLock.take(path)
    assert again is not None
    again.remove()
    assert not path.exists()


def test_locks_are_taken_while_another_lab_removes_the_empty_folder(tmp_path: Path) -> None:
    """The last lab removes the folder of all locks: one that starts in that moment makes it again."""
    folder, over = tmp_path / "run", threading.Event()

    def remove() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                folder.rmdir()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(300):
            lock = LabLock.take(folder / "lab.lock")
            assert lock is not None
            lock.remove()
    finally:
        over.set()
        remover.join()


def test_limits_are_restored_by_the_last_lab_only(tmp_path: Path) -> None:
    """While another lab runs the record stays; without a record there is nothing to restore."""
    record = tmp_path / "limits.json"
    assert not restore_limits(record, needed=lambda: False)
    record.write_text("{}")
    assert not restore_limits(record, needed=lambda: True)
    assert record.exists()
    assert restore_limits(record, needed=lambda: False)
    assert not record.exists()


def test_a_lab_is_removed_for_its_own_site_directory_only() -> None:
    """`down --site` of another directory is refused with the name of the right one."""
    record = LabSettings("tnone", "/srv/first/rehearsal")
    check_owner(record, Path("/srv/first/rehearsal"))
    check_owner(record, None)
    check_owner(None, Path("/srv/second/rehearsal"))
    with pytest.raises(UsageError, match="lab tnone belongs to /srv/first/rehearsal, not to /srv/second/rehearsal"):
        check_owner(record, Path("/srv/second/rehearsal"))


def test_a_lab_without_a_name_is_the_one_of_this_directory() -> None:
    """Of the directory, of one below it, of the one around it, or the environment's; another checkout's is refused."""
    record, site = LabSettings("tnone", "/srv/first/rehearsal"), Path("/srv/first/rehearsal")
    for here in ("/", "/srv", "/srv/first", "/srv/first/rehearsal", "/srv/first/docs/how-to"):
        require_near(record, Path(here), None)
    require_near(record, Path("/srv/second"), site)
    require_near(None, Path("/srv/second"), None)
    for other in (None, Path("/srv/second/rehearsal")):
        with pytest.raises(
            UsageError, match="lab tnone belongs to /srv/first/rehearsal, and not to /srv/second"
        ) as caught:
            require_near(record, Path("/srv/second"), other)
        assert "--name tnone" in caught.value.remedy


def test_lock_file_removed_by_its_last_holder_is_not_held_by_two(tmp_path: Path) -> None:
    """Who waited on a removed file takes the new one."""
    path = tmp_path / "lab.lock"
    first = LabLock.take(path)
    assert first is not None
    first.remove()
    second = LabLock.take(path)
    assert second is not None
    assert LabLock.take(path) is None
    second.remove()


@pytest.mark.parametrize("subnet", ["10.88.0.0/24", "8.8.0.0/16", "10.88.1.0/16", "lab", "fd00::/16"])
def test_subnet_that_cannot_carry_a_lab_is_refused(subnet: str) -> None:
    """The message names the option and what is allowed."""
    with pytest.raises(UsageError) as caught:
        LabSettings("lab", "/tmp/x", subnet=subnet)
    assert caught.value.where == "--subnet"


@pytest.mark.parametrize("name", ["Lab", "../x", "longerthan8", "1lab", ""])
def test_name_that_cannot_prefix_an_interface_is_refused(name: str) -> None:
    """No path and no interface is ever made of such a name."""
    with pytest.raises(UsageError):
        LabSettings(name, "/tmp/x")


def test_namespaces_have_no_other_installer_than_maas() -> None:
    """Hosts in namespaces boot nothing from a network; virtual metal has the choice, and by default our own PXE."""
    with pytest.raises(UsageError) as caught:
        LabSettings("lab", "/tmp/x", installer="pxe")
    assert caught.value.where == "--installer"
    assert LabSettings("lab", "/tmp/x").has_maas
    assert not LabSettings("lab", "/tmp/x", metal="qemu").has_maas
    assert LabSettings("lab", "/tmp/x", metal="qemu", installer="maas").has_maas


@pytest.mark.parametrize("options", [{"metal": "qemu"}, {"hosts": 1}, {"hosts": 501}])
def test_pods_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    """Virtual metal has one management network; each pod has at least one machine, and at most 250."""
    with pytest.raises(UsageError) as caught:
        LabSettings("lab", "/tmp/x", pods=2, **options)
    assert caught.value.where == "--pods"


def test_maas_waits_for_machines_that_really_boot() -> None:
    """Half an hour as MAAS does, however short the lab's other delays are."""
    assert LabSettings("lab", "/tmp/x", metal="qemu", short=True).delays.netboot_timeout == 1800
    assert LabSettings("lab", "/tmp/x", short=True).delays.netboot_timeout < 60


def settings(*faults: str) -> LabSettings:
    return LabSettings("tctl", "/nowhere", hosts=2, faults=faults)


def machine() -> Machine:
    return build(1, Layout(settings().layout.network), "secret")


def test_boot_stage_shows_how_far_a_machine_came() -> None:
    """From the world's state alone; a hung POST differs from a machine without an OS."""
    it = machine()
    assert boot_stage(it, MachineState()) == "off"
    assert boot_stage(it, MachineState(power=True, running=True)) == "running"
    assert boot_stage(it, MachineState(power=True)) == "no OS"
    hung = RunningLab(settings("never-boots:node001"), print).world.machines["node001"]
    assert boot_stage(hung, MachineState(power=True)) == "hangs in POST"


def test_quirks_are_injected_and_healed_and_what_was_written_stays() -> None:
    """Over the control socket and by `lab up --fault`; a healed machine keeps the password that its BMC was given."""
    cluster = RunningLab(settings("bmc-quirks:node002:slow=0.1-0.2"), print)
    operations, world = Requests(cluster), cluster.world

    async def scenario() -> None:
        wanted = {"do": "inject", "fault": "bmc-quirks", "target": "node001:weak-etag,redirects"}
        answer = await operations.handle(wanted)
        assert answer == {"machine": "node001", "fault": "bmc-quirks:weak-etag, bmc-quirks:redirects"}
        world.rewrite("node001", lambda it: replace(it, bmc=replace(it.bmc, password="another")))
        assert (await operations.handle({"do": "heal", "target": ""}))["healed"] == ["node001", "node002"]

    assert world.machines["node002"].bmc.quirks == {BmcQuirk.SLOW}
    asyncio.run(scenario())
    assert not any(it.bmc.quirks for it in world.machines.values())
    assert world.machines["node001"].bmc.password == "another"


def test_faults_of_the_command_line_are_there_from_the_start_and_heal() -> None:
    """A fault of `lab up --fault` is like an injected one: listeners are called on repair, and the machine is as built."""
    cluster = RunningLab(settings("missing-gpu:node001:gpu2", "never-boots:node002"), print)
    operations = Requests(cluster)
    reported: list[Machine] = []

    async def listen(changed: Machine) -> None:
        reported.append(changed)

    async def scenario() -> None:
        cluster.world.on_change(listen)
        assert (await operations.handle({"do": "heal", "target": ""}))["healed"] == ["node001", "node002"]
        assert (await operations.handle({"do": "heal", "target": "node001"}))["healed"] == []
        answer = await operations.handle({"do": "inject", "fault": "swapped-cable", "target": "node002"})
        assert answer == {"machine": "node002", "fault": "swapped-cable:mlx5_0,mlx5_1"}
        with pytest.raises(UsageError, match="cannot 'explode'"):
            await operations.handle({"do": "explode"})

    asyncio.run(scenario())
    assert [(m.name, len(m.gpus), m.boots, m.faults) for m in reported] == [
        ("node001", 8, True, ()),
        ("node002", 8, True, ()),
        ("node002", 8, True, ("swapped-cable:mlx5_0,mlx5_1",)),
    ]
