"""ibsim's net file: the devices. Cables are plugged in at its console, so that there is one way to plug a cable.

Debian's ibsim 0.10 knows no NDR. A generation is therefore simulated by the one before it: 400 Gb/s as HDR, 200 as
EDR, 100 as FDR; `tools` undoes that in what the tools print. Two ports agree on the fastest speed that both allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clusterctl_lab.emulators.fabric.topology import SWITCH_PORTS, Adapter, Switch

_FDR, _EDR, _HDR = 1, 2, 4  # LinkSpeedExtEnabled, InfiniBand Architecture 1.3 volume 1, PortInfo
_QUANTUM_2 = 0xD2F2
_CONNECTX_7 = 0x1021


def render(switches: Iterable[Switch], adapters: Iterable[Adapter]) -> str:
    """A net file for ibsim, in the format of ibnetdiscover's output."""
    return "\n".join((*_switches(switches), *_adapters(adapters)))


def _switches(switches: Iterable[Switch]) -> Iterator[str]:
    for switch in switches:
        yield from _head(_QUANTUM_2, switch.guid, _FDR | _EDR | _HDR)
        yield f"switchguid=0x{switch.guid}({switch.guid})"
        yield f'Switch\t{SWITCH_PORTS} "S-{switch.guid}"\t\t# "{switch.description}" enhanced port 0 lid 0 lmc 0'
        yield ""


def _adapters(adapters: Iterable[Adapter]) -> Iterator[str]:
    for adapter in adapters:
        yield from _head(_CONNECTX_7, adapter.guid, _speeds(adapter.gbps))
        yield f"caguid=0x{adapter.guid}"
        yield f'Ca\t1 "H-{adapter.guid}"\t\t# "{adapter.description}"'
        yield ""


def _head(device: int, guid: str, speeds: int) -> tuple[str, ...]:
    return "vendid=0x2c9", f"devid=0x{device:x}", f"sysimgguid=0x{guid}", f"extspeed={speeds}"


def _speeds(gbps: int) -> int:
    """The speeds that an adapter of this rate (4 lanes) allows; nothing below 100 Gb/s can be shown."""
    if gbps >= 400:
        return _FDR | _EDR | _HDR
    return _FDR | _EDR if gbps >= 200 else _FDR
