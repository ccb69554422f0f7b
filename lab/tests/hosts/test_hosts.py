"""Lab hosts for real: systemd, ssh, reboot, wires, isolation, and nothing left behind. Needs root."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl_lab.hosts import (
    ExitReason,
    NamespaceHosts,
    default_state_dir,
    erase_disks,
    rail_interface,
    sweep_leftovers,
)
from clusterctl_lab.hosts.sysctls import PROC_SYS
from lab.tests.hosts.hosts_kit import TestLab, eventually, keypair, lab, leftovers, needs_lab, ssh, ssh_answers
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, needs_lab]

USER_DATA = """#cloud-config
hostname: node001
users:
  - name: ops
    sudo: "ALL=(ALL) NOPASSWD:ALL"
    ssh_authorized_keys: ["{authorized}"]
ssh_keys:
  ed25519_private: |
{private}
  ed25519_public: {public}
"""


def user_data(folder: Path) -> tuple[bytes, str]:
    """Cloud-config with a pinned host key, and that key's public half; the user's key is `folder`/ops."""
    _, authorized = keypair(folder, "ops")
    private, public = keypair(folder, "host")
    indented = "\n".join(f"    {line}" for line in private.splitlines())
    return USER_DATA.format(authorized=authorized, private=indented, public=public).encode(), public


async def running(it: TestLab, index: int = 0) -> bool:
    return await it.sh(it.machines[index], "systemctl is-system-running") == (0, "running")


def test_installed_host_is_reached_by_its_pinned_key(tmp_path: Path) -> None:
    """The first connection already knows the host; the user is root by sudo without a password; all units are fine."""
    data, public = user_data(tmp_path)

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            await it.up(data)
            assert await eventually(lambda: ssh_answers(machine.address))
            (tmp_path / "known_hosts").write_text(f"{machine.address} {public}\n")
            ran = await ssh(
                tmp_path,
                "ops",
                "ops",
                machine.address,
                "sudo -n id -u; hostname; cat /etc/clusterctl/simulated /etc/clusterctl-lab/root-disk",
            )
            assert ran.stdout.decode().split() == ["0", "node001", "simulated", machine.drives[0].serial], ran.stderr
            assert await eventually(lambda: running(it))
            _, other = keypair(tmp_path, "other")
            (tmp_path / "known_hosts").write_text(f"{machine.address} {other}\n")
            refused = await ssh(tmp_path, "ops", "ops", machine.address, "true")
            assert refused.returncode == 255

    asyncio.run(scenario())


def test_reboot_from_within_is_reported_and_changes_the_boot_id() -> None:
    """`systemctl reboot` ends the host with that reason, power-off with its own; files stay, the boot id does not."""

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            await it.up()
            assert await eventually(lambda: running(it))
            _, before = await it.sh(machine, "echo kept > /etc/kept; cat /proc/sys/kernel/random/boot_id")
            await it.sh(machine, "systemctl reboot")
            assert await asyncio.wait_for(it.exits.get(), 600) == (machine.name, ExitReason.REBOOT)
            await it.hosts.boot(machine)
            kept, after = (await it.sh(machine, "cat /etc/kept /proc/sys/kernel/random/boot_id"))[1].split()
            assert kept == "kept"
            assert after != before
            assert await eventually(lambda: running(it))
            await it.sh(machine, "systemctl poweroff")
            assert await asyncio.wait_for(it.exits.get(), 600) == (machine.name, ExitReason.POWEROFF)
            assert it.hosts.pid(machine.name) is None

    asyncio.run(scenario())


def test_halt_leaves_only_the_disk() -> None:
    """After the power is gone no process, cgroup, wire or run file of the host is left, even of a frozen one."""

    async def scenario() -> None:
        async with lab(2) as it:
            first, second = it.machines
            await it.up()
            proc = f"/proc/{it.hosts.pid(first.name)}"
            assert [line for line in leftovers("thosts") if first.name in line]
            await it.sh(first, "setsid sleep 1000 >/dev/null 2>&1 &")
            (it.hosts.cgroup(first.name) / "cgroup.freeze").write_text("1")
            await it.hosts.halt(first)
            await it.hosts.halt(first)
            assert not await asyncio.to_thread(Path(proc).exists)
            assert not it.hosts.cgroup(first.name).exists()
            assert not [line for line in leftovers("thosts") if first.name in line]
            links = await _switch_ports(it.hosts)
            assert {f"h{second.index}m", f"h{second.index}r0"} <= links
            assert not [link for link in links if link.startswith(f"h{first.index}")]
            assert it.hosts.installed(first)

    asyncio.run(scenario())


async def _switch_ports(hosts: NamespaceHosts) -> set[str]:
    argv = ["nsenter", f"--net={hosts._switch.netns}", "ip", "-json", "link"]
    listing = await asyncio.to_thread(subprocess.run, argv, capture_output=True, check=True)
    return {link["ifname"] for link in json.loads(listing.stdout)}


def test_bytes_move_over_the_rails() -> None:
    """A megabyte travels from ib0 to ib0 in jumbo frames; it stops when the cable is pulled, and goes on when it is back."""

    async def scenario() -> None:
        async with lab(2) as it:
            first, second = it.machines
            await it.up()
            target = str(rail_interface(it.settings.layout, second, 0).ip)
            jumbo = f"ping -q -I ib0 -M do -s 8900 -c 20 -i 0.002 -W 1 {target}"
            assert (await it.sh(first, jumbo))[0] == 0
            assert await eventually(lambda: running(it, 1))
            assert (await it.sh(second, RECEIVE))[0] == 0
            sent = await it.sh(first, SEND.format(target=target))
            assert sent == (0, "1048576")
            unplugged = replace(second, hcas=(replace(second.hcas[0], cable=None), *second.hcas[1:]))
            await it.hosts.refresh(unplugged)
            assert (await it.sh(second, "cat /sys/class/net/ib0/carrier"))[1] == "0"
            assert (await it.sh(first, f"ping -q -c 1 -W 1 {target}"))[0] != 0
            await it.hosts.refresh(second)
            assert (await it.sh(first, f"ping -q -c 3 -W 2 {target}"))[0] == 0

    asyncio.run(scenario())


RECEIVE = """systemd-run --quiet --service-type=notify --property=NotifyAccess=all python3 -c '
import os, socket
server = socket.create_server(("", 5001))
os.system("systemd-notify --ready")
connection, _ = server.accept()
count = 0
while data := connection.recv(65536):
    count += len(data)
connection.sendall(str(count).encode())
'"""
SEND = """python3 -c '
import socket
connection = socket.create_connection(("{target}", 5001))
connection.sendall(bytes(1 << 20))
connection.shutdown(socket.SHUT_WR)
print(connection.recv(100).decode())
'"""


def test_host_cannot_touch_the_machine() -> None:
    """Clock, device nodes and kernel settings of the machine are out of reach; the host's own settings are not."""
    swappiness = (PROC_SYS / "vm/swappiness").read_text()

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            await it.up()
            for script in ('date -s "$(date)"', "mknod /root/disk b 254 0", "echo 1 > /proc/irq/default_smp_affinity"):
                assert (await it.sh(machine, script))[0] != 0, script
                inside = f"systemd-run --quiet --wait --pipe sh -c '{script}'"
                assert (await it.sh(machine, inside))[0] != 0, script
            assert await it.sh(machine, "sysctl -qw vm.swappiness=7 && sysctl -n vm.swappiness") == (0, "7")
            assert (await it.sh(machine, "sysctl -qw net.ipv4.tcp_keepalive_time=77"))[0] == 0
            assert not (await it.sh(machine, "ls /dev/[vs]d* /dev/nvme* 2>/dev/null"))[1]

    asyncio.run(scenario())
    assert (PROC_SYS / "vm/swappiness").read_text() == swappiness
    assert (PROC_SYS / "net/ipv4/tcp_keepalive_time").read_text() != "77\n"


def test_skeleton_and_tools_appear(tmp_path: Path) -> None:
    """Shared tools come from the extra lower folder, the machine's files from the skeleton, renewed by `refresh`."""

    async def scenario(tools: Path) -> None:
        (tools / "usr/local/bin").mkdir(parents=True)
        (tools / "usr/local/bin/tool").write_text("#!/bin/sh\ncat /etc/clusterctl-lab/machine\n")
        (tools / "usr/local/bin/tool").chmod(0o755)
        skeleton = {"/etc/clusterctl-lab/machine": (b"first", 0o644)}
        async with lab(1, skeleton=lambda _: skeleton, extra_lower=tools) as it:
            (machine,) = it.machines
            await it.up()
            assert await it.sh(machine, "tool") == (0, "first")
            skeleton["/etc/clusterctl-lab/machine"] = (b"second", 0o644)
            await it.hosts.refresh(machine)
            assert await it.sh(machine, "tool") == (0, "second")

    asyncio.run(scenario(tmp_path))


def test_install_follows_the_drives() -> None:
    """Only an own drive can be written to, only while the power is off; pulling the drive takes the OS away."""

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            with pytest.raises(EdgeError, match="no drive"):
                await it.hosts.install(machine, "FOREIGN", b"")
            await it.up()
            with pytest.raises(EdgeError, match="runs"):
                await it.hosts.install(machine, machine.drives[0].serial, b"")
            await it.sh(machine, "touch /etc/old")
            await it.hosts.halt(machine)
            assert it.hosts.installed(machine)
            assert not it.hosts.installed(replace(machine, drives=machine.drives[1:]))
            await it.hosts.install(machine, machine.drives[0].serial, b"")
            await it.hosts.boot(machine)
            assert (await it.sh(machine, "test -e /etc/old"))[0] == 1

    asyncio.run(scenario())


def test_service_addresses_answer_hosts() -> None:
    """Addresses added for BMCs and services are on the machine, twice or once, and hosts reach them."""

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            await it.up()
            layout = it.settings.layout
            await it.hosts.add_addresses([layout.maas, layout.bmc(1)])
            await it.hosts.add_addresses([layout.maas, layout.bmc(1)])
            assert (await it.sh(machine, f"ping -q -c 1 -W 2 {layout.bmc(1)}"))[0] == 0

    asyncio.run(scenario())


def test_two_labs_side_by_side() -> None:
    """Labs under another name and subnet do not see each other; the same subnet is refused with words."""

    async def scenario() -> None:
        async with lab(1) as first, lab(1, name="thosts2", subnet="10.215.0.0/16") as second:
            await asyncio.gather(first.up(), second.up())
            for it in (first, second):
                address = it.machines[0].address
                assert await eventually(lambda address=address: ssh_answers(address))
            with pytest.raises(UsageError, match="overlaps"):
                async with lab(1, name="thosts3"):
                    pass
            assert not leftovers("thosts3")
            assert await eventually(lambda: running(first))
        assert not leftovers("thosts")
        assert not leftovers("thosts2")

    asyncio.run(scenario())


KILLED = """
import asyncio
from lab.tests.hosts.hosts_kit import lab
async def main():
    async with lab(3, name="thosts4", subnet="10.220.0.0/16") as it:
        await it.up()
        print("up", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def test_killed_lab_is_swept() -> None:
    """After SIGKILL of the lab its hosts die too; one sweep removes and reports the rest; the next finds nothing."""
    repository = ROOT
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, cwd=repository) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGKILL)
    found = asyncio.run(sweep_leftovers("thosts4"))
    assert "hosts and their cgroups" in found
    assert not leftovers("thosts4")
    assert asyncio.run(sweep_leftovers("thosts4")) == ()
    erase_disks(default_state_dir("thosts4"))
    assert not default_state_dir("thosts4").exists()


def test_cancelled_boot_leaves_nothing() -> None:
    """Power taken away in the middle of a boot: no process and no wire stays, and the next boot works."""

    async def scenario() -> None:
        async with lab(1) as it:
            (machine,) = it.machines
            await it.hosts.install(machine, machine.drives[0].serial, b"")
            for pause in (0.0, 0.01, 0.03, 0.06):
                boot = asyncio.create_task(it.hosts.boot(machine))
                await asyncio.sleep(pause)
                boot.cancel()
                await asyncio.gather(boot, return_exceptions=True)
                await it.hosts.halt(machine)
                assert not it.hosts.cgroup(machine.name).exists()
                assert not [line for line in leftovers("thosts") if machine.name in line]
            await it.hosts.boot(machine)
            assert await eventually(lambda: running(it))

    asyncio.run(scenario())


def test_thirty_hosts_come_up_quickly() -> None:
    """30 hosts with 8 rails each are installed, booted and answer ssh for at most one second of processor time per host.
    Processor time, because it is the same on a crowded machine; 0.2 s were measured.
    """

    async def scenario() -> float:
        async with lab(30) as it:
            started = _processor_seconds()
            await it.up()
            answers = (eventually(lambda address=machine.address: ssh_answers(address)) for machine in it.machines)
            assert all(await asyncio.gather(*answers))
            spent = _processor_seconds() - started
            hosts = it.hosts.cgroup(it.machines[0].name).parent / "cpu.stat"
            return spent + int(hosts.read_text().split()[1]) / 1e6

    seconds = asyncio.run(scenario())
    print(f"30 hosts for {seconds:.1f} s of processor time")
    assert 0 < seconds < 30


def _processor_seconds() -> float:
    """Return what this process and the children that ended have used; the hosts' processes are in their cgroup."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
