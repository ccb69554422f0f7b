"""What boots from the wrong disk, and what answers nothing: lab hosts for real. Needs root."""

from __future__ import annotations

import asyncio

import pytest

from clusterctl_lab.faults import inject
from lab.tests.hosts.hosts_kit import eventually, lab, needs_lab, ssh_answers

pytestmark = [pytest.mark.lab, needs_lab]

SUBNET = "10.219.0.0/16"


def test_an_older_os_on_a_data_drive() -> None:
    """A firmware that prefers that drive boots another owner's OS: other name, other host key, no key of ours; the OS
    that was installed is still there, and boots once the drive is out of the way.
    """

    async def scenario() -> None:
        async with lab(1, name="tbmcs", subnet=SUBNET) as it:
            (machine,) = it.machines
            await it.up()
            ours = await it.sh(machine, "cat /etc/hostname /etc/ssh/ssh_host_ed25519_key.pub")
            await it.hosts.halt(machine)
            broken = inject({machine.name: machine}, "wrong-boot-disk", machine.name)
            for _ in range(2):  # the second time it is there already
                await it.hosts.boot(broken)
                assert await eventually(lambda: ssh_answers(machine.address))
                theirs = await it.sh(broken, "cat /etc/hostname /etc/ssh/ssh_host_ed25519_key.pub")
                assert theirs[1].startswith("db-17\n")
                assert theirs[1].splitlines()[1] != ours[1].splitlines()[1]
                assert (await it.sh(broken, "find / -xdev -name authorized_keys -size +0"))[1] == ""
                await it.hosts.halt(broken)
            await it.hosts.boot(machine)
            assert await it.sh(machine, "cat /etc/hostname /etc/ssh/ssh_host_ed25519_key.pub") == ours

    asyncio.run(scenario())


def test_an_address_that_no_host_has() -> None:
    """A dead BMC's address is taken away, once or twice, and comes back; its neighbours keep theirs."""

    async def scenario() -> None:
        async with lab(1, name="tbmcs", subnet=SUBNET) as it:
            (machine,) = it.machines
            await it.up()
            layout = it.settings.layout
            await it.hosts.add_addresses([layout.bmc(1), layout.bmc(2)])
            ping = f"ping -q -c 1 -W 1 {layout.bmc(1)}"
            assert (await it.sh(machine, ping))[0] == 0
            for _ in range(2):
                await it.hosts.remove_addresses([layout.bmc(1)])
            assert (await it.sh(machine, ping))[0] != 0
            assert (await it.sh(machine, f"ping -q -c 1 -W 1 {layout.bmc(2)}"))[0] == 0
            await it.hosts.add_addresses([layout.bmc(1)])
            assert (await it.sh(machine, ping))[0] == 0

    asyncio.run(scenario())
