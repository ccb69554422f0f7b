"""ibstat: all adapters, or `-l`, their names; as recorded on 8 x H100 with ConnectX-7 (leptonai/gpud, Apache-2.0)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host import adapter_flash
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load


def main(argv: Sequence[str]) -> int:
    hcas = load().hcas
    if list(argv) == ["-l"]:
        sys.stdout.write("".join(f"{hca.name}\n" for hca in hcas))
        return 0
    if argv:
        sys.stderr.write("the lab's ibstat knows no option but -l\n")
        return 2
    sys.stdout.write("".join(_adapter(hca) for hca in hcas))
    return 0


def _adapter(hca: Hca) -> str:
    """An unplugged port shows the rate of a link that was never trained."""
    up = hca.plugged
    active = up and (hca.configured or hca.ethernet)
    lid = 0 if hca.ethernet else hca.lid if active else 65535
    fields = (
        f"CA '{hca.name}'",
        "\tCA type: MT4129",
        "\tNumber of ports: 1",
        f"\tFirmware version: {adapter_flash.running(hca)}",
        "\tHardware version: 0",
        f"\tNode GUID: 0x{hca.guid}",
        f"\tSystem image GUID: 0x{hca.guid}",
        "\tPort 1:",
        f"\t\tState: {'Active' if active else 'Initializing' if up else 'Down'}",
        f"\t\tPhysical state: {'LinkUp' if up else 'Polling'}",
        f"\t\tRate: {hca.rate_gbps if up else 10}",
        f"\t\tBase lid: {lid}",
        "\t\tLMC: 0",
        f"\t\tSM lid: {1 if active and not hca.ethernet else 0}",
        "\t\tCapability mask: 0xa751e848",
        f"\t\tPort GUID: 0x{hca.guid}",
        f"\t\tLink layer: {'Ethernet' if hca.ethernet else 'InfiniBand'}",
    )
    return "\n".join(fields) + "\n"
