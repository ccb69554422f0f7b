"""perfquery: `[-x] -C HCA -P 1`, the counters of this host's own port.

The lines are those of libibmad's dump of PortCounters and PortCountersExtended (rdma-core 44, the names in its order);
the plain counters stop at their maximum in the InfiniBand specification (volume 1, 16.1.3.5).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load

KEY_WIDTH = 33
TRAFFIC = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts")
CAST = ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts")
ERRORS = {
    "SymbolErrorCounter": 16,
    "LinkErrorRecoveryCounter": 8,
    "LinkDownedCounter": 8,
    "PortRcvErrors": 16,
    "PortRcvRemotePhysicalErrors": 16,
    "PortRcvSwitchRelayErrors": 16,
    "PortXmitDiscards": 16,
    "PortXmitConstraintErrors": 8,
    "PortRcvConstraintErrors": 8,
    "LocalLinkIntegrityErrors": 4,
    "ExcessiveBufferOverrunErrors": 4,
    "VL15Dropped": 16,
}
"""Bits of each in PortCounters; in PortCountersExtended all have 64."""


def main(argv: Sequence[str]) -> int:
    extended = "-x" in argv
    words = [word for word in argv if word != "-x"]
    options = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not options.keys() <= {"-C", "-P"} or options.get("-P", "1") != "1":
        sys.stderr.write("the lab's perfquery knows -x, -C HCA and -P 1\n")
        return 2
    hcas = {hca.name: hca for hca in load().hcas}
    hca = hcas.get(options.get("-C", next(iter(hcas), "")))
    if hca is None:
        sys.stderr.write(f"perfquery: iberror: failed: can't open UMAD port ({options.get('-C', '(null)')}:1)\n")
        return 1
    if not hca.plugged:
        sys.stderr.write("perfquery: iberror: failed: can't resolve self port\n")
        return 1
    sys.stdout.write(_extended(hca) if extended else _plain(hca))
    return 0


def _plain(hca: Hca) -> str:
    counts = grown(hca)
    values = {name: str(min(counts.get(name, 0), 2**bits - 1)) for name, bits in ERRORS.items()}
    fields = {"PortSelect": "1", "CounterSelect": "0x0000"}
    for name, value in values.items():
        if name == "LocalLinkIntegrityErrors":
            fields["CounterSelect2"] = "0x00"
        fields[name] = value
    fields |= dict.fromkeys((*TRAFFIC, "PortXmitWait"), "0")
    return _text(f"# Port counters: Lid {hca.lid} port 1 (CapMask: 0x5A00)", fields)


def _extended(hca: Hca) -> str:
    counts = grown(hca)
    fields = {"PortSelect": "1", "CounterSelect": "0x0000"} | dict.fromkeys((*TRAFFIC, *CAST), "0")
    fields["CounterSelect2"] = "0x00000000"
    fields |= {name: str(counts.get(name, 0)) for name in (*ERRORS, "PortXmitWait", "QP1Dropped")}
    return _text(f"# Port extended counters: Lid {hca.lid} port 1 (CapMask: 0x5A00 CapMask2: 0x0000002)", fields)


def grown(hca: Hca) -> dict[str, int]:
    """Return the counter's growth since the boot, at the model's rates."""
    hours = uptime() / 3600
    return {
        "SymbolErrorCounter": int(hca.symbol_per_hour * hours),
        "PortRcvErrors": int(hca.receive_per_hour * hours),
        "LinkDownedCounter": hca.downs,
    }


def _text(head: str, fields: dict[str, str]) -> str:
    return "\n".join([head, *(_line(key, value) for key, value in fields.items())]) + "\n"


def _line(key: str, value: str) -> str:
    return f"{key}:".ljust(KEY_WIDTH, ".") + value
