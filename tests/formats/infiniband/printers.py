"""Fabrics as the tools print them: written from their formats, sharing nothing with the parsers."""

from __future__ import annotations

from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid

LANES = {
    "SDR": "2.5",
    "QDR": "10.0",
    "FDR10": "10.0",
    "FDR": "14.0625",
    "EDR": "25.78125",
    "HDR": "53.125",
    "NDR": "106.25",
    "XDR": "212.5",
}
SPEED_BITS = {"SDR": 1, "QDR": 4, "FDR10": 65536, "FDR": 256, "EDR": 512, "HDR": 1024, "NDR": 2048, "XDR": 16777216}
WIDTH_BITS = {1: 1, 2: 16, 4: 2, 8: 4, 12: 8}


def two_switches(rates: tuple[tuple[int, str], ...] = ((4, "NDR"),), name: str = "node") -> Fabric:
    """Two switches with two cables in between, two adapters at each; the links take turns at the rates."""
    leaves = [Device(Guid(f"{0xA0 + n:016x}"), DeviceKind.SWITCH, f"leaf-{n}", 6, lids=(n,)) for n in (1, 2)]
    hosts = [
        Device(guid, DeviceKind.CA, f"{name}{n:03} mlx5_0", 1, port_guids=(guid,), lids=(10 + n,))
        for n in range(1, 5)
        for guid in [Guid(f"{0xB0 + n:016x}")]
    ]
    pairs = [((leaves[n // 2].guid, n % 2 + 1), (host.guid, 1)) for n, host in enumerate(hosts)]
    pairs += [((leaves[0].guid, port), (leaves[1].guid, port)) for port in (3, 5)]
    links = [Link(PortId(*a), PortId(*b), *rates[n % len(rates)]) for n, (a, b) in enumerate(pairs)]
    return Fabric({d.guid: d for d in (*leaves, *hosts)}, tuple(links))


def ends_of(fabric: Fabric) -> dict[PortId, tuple[PortId, Link]]:
    return {a: (b, link) for link in fabric.links for a, b in ((link.a, link.b), (link.b, link.a))}


def ibnetdiscover(fabric: Fabric) -> str:
    ends, text = ends_of(fabric), "# Topology file\n"
    for guid, device in fabric.devices.items():
        switch = device.kind is DeviceKind.SWITCH
        attribute, word, sign = ("switchguid", "Switch", "S") if switch else ("caguid", "Ca", "H")
        text += f"\nvendid=0x2c9\ndevid=0x0\n{attribute}=0x{guid}({guid})\n"
        own = f" enhanced port 0 lid {device.lids[0]} lmc 0" if switch else ""
        text += f'{word}\t{device.ports} "{sign}-{guid}"\t\t# "{device.description}"{own}\n'
        for number in range(1, device.ports + 1):
            if (end := ends.get(PortId(guid, number))) is not None:
                peer, link = end
                far = fabric.devices[peer.guid]
                far_sign = "S" if far.kind is DeviceKind.SWITCH else "H"
                mine, lid = ("", "") if switch else (f"({guid}) ", f"lid {device.lids[0]} lmc 0 ")
                port = "" if far.kind is DeviceKind.SWITCH else f"({peer.guid})"
                text += f'[{number}]{mine}\t"{far_sign}-{peer.guid}"[{peer.number}]{port}\t\t'
                text += f'# {lid}"{far.description}" lid {far.lids[0]} {link.rate}\n'
    return text


def ibnetdiscover_p(fabric: Fabric) -> str:
    ends, text = ends_of(fabric), ""
    for guid, device in fabric.devices.items():
        for number in range(device.ports, 0, -1):
            end, lid = ends.get(PortId(guid, number)), device.lids[0]
            head = f"{_sign(device)} {lid:5} {number:2} 0x{guid}"
            if end is None:
                text += f"{head} 4x SDR                                    '{device.description}'\n"
            else:
                peer, link = end
                far = fabric.devices[peer.guid]
                text += (
                    f"{head} {link.width}x {link.speed} - {_sign(far)} {far.lids[0]:5} {peer.number:2} 0x{peer.guid}"
                )
                text += f" ( '{device.description}' - '{far.description}' )\n"
    return text


def iblinkinfo(fabric: Fabric, *, line_mode: bool) -> str:
    ends, text = ends_of(fabric), ""
    for guid, device in fabric.devices.items():
        switch = device.kind is DeviceKind.SWITCH
        if not line_mode:
            text += f"Switch: 0x{guid} {device.description}:\n" if switch else f"CA: {device.description}:\n"
        for number in range(1, device.ports + 1):
            if line_mode:
                text += f'0x{guid} "{device.description:>30}" '
            else:
                text += " " * 6 + (" " * 18 if switch else f"0x{guid}")
            text += f" {device.lids[0]:5} {number:4}[  ] =="
            text += _link(fabric, ends.get(PortId(guid, number)), line_mode=line_mode)
    return text


def _link(fabric: Fabric, end: tuple[PortId, Link] | None, *, line_mode: bool) -> str:
    if end is None:
        return '(                Down/ Polling)==>             [  ] "" ( )\n'
    peer, link = end
    far = fabric.devices[peer.guid]
    fdr10 = " (FDR10)" if link.speed == "FDR10" else ""
    head = f"( {link.width}X {LANES[link.speed]:>13} Gbps{fdr10} Active/  LinkUp)==>"
    guid = f"  0x{peer.guid}" if line_mode else ""
    return f'{head}{guid}  {far.lids[0]:5} {peer.number:4}[  ] "{far.description}" (Could be 12X )\n'


def db_csv(fabric: Fabric, more: str = "") -> str:
    """`more` are further sections."""
    ends = ends_of(fabric)
    text = "# made by a test\nSTART_NODES\nNodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID,DeviceID\n"
    for guid, device in fabric.devices.items():
        kind = 2 if device.kind is DeviceKind.SWITCH else 1
        text += f'"{device.description}",{device.ports},{kind},0x{guid},0x{guid},0x{guid},0\n'
    text += "END_NODES\n\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,MKey,LID,LinkWidthActv,LinkSpeedActv,PortState\n"
    for port, (_, link) in ends.items():
        lid = fabric.devices[port.guid].lids[0]
        rate = f"{WIDTH_BITS[link.width]},{SPEED_BITS[link.speed]}"
        text += f"0x{port.guid},0x{port.guid},{port.number},0x5ec4e7,{lid},{rate},4\n"
    text += "END_PORTS\n\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2\n"
    for link in fabric.links:
        text += f"0x{link.b.guid},{link.b.number},0x{link.a.guid},{link.a.number}\n"
    return f"{text}END_LINKS\n{more}"


def ibqueryerrors(fabric: Fabric, errors: dict[PortId, dict[str, int]], thresholds: str = "") -> str:
    text = ""
    for port, values in errors.items():
        message = " ".join(f"[{name} == {value}]" for name, value in values.items())
        text += f'Errors for 0x{port.guid} "x"\n   GUID 0x{port.guid} port ALL: {message}\n'
        text += f"   GUID 0x{port.guid} port {port.number}: {message}\n"
    text += f"\n## Summary: {len(fabric.devices)} nodes checked, {len(errors)} bad nodes found\n"
    text += f"##          {2 * len(fabric.links)} ports checked, {len(errors)} ports have errors beyond threshold\n"
    return f"{text}## Thresholds: {thresholds}\n## Suppressed:\n"


def perfquery(lid: int, port: int, *, extended: bool = True, **counters: int) -> str:
    errors = ("SymbolErrorCounter", "LinkDownedCounter", "PortRcvErrors")
    passed = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")
    names = (*passed, "PortMulticastRcvPkts", *errors) if extended else (*errors, *passed, "PortXmitWait")
    head = f"# Port {'extended ' if extended else ''}counters: Lid {lid} port {port} (CapMask: 0x5A00)\n"
    head += f"PortSelect:......................{port}\nCounterSelect:...................0x0000\n"
    values = {**dict.fromkeys(names, 0), **counters}
    return head + "".join(f"{name}:".ljust(33, ".") + f"{value}\n" for name, value in values.items())


def _sign(device: Device) -> str:
    return "SW" if device.kind is DeviceKind.SWITCH else "CA"
