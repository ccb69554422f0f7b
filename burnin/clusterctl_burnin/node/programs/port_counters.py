"""Runs on a node, as the built-in probe `port-counters SECONDS`: the error counters of all its InfiniBand ports, twice;
`port-counters once`: one reading.

Standard library only, Python 3.9. Counters stand from the last boot or the last `perfquery -R` on, so that only what
is added between two readings shows the link as it is now. perfquery asks each adapter for its own port: that needs
the right to send management datagrams on this node (root), and none in the fabric. Asked for
first are the extended counters, of 64 bits (`-x`); where an adapter has none of errors, the plain ones, of 16 bits and
fewer, as the kernel's `/sys/class/infiniband/*/ports/*/counters` are.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from clusterctl_burnin.node.processes import ask as ask_tool

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Callable, Optional

    Ask = Callable[..., tuple[int, str]]

PATIENCE = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))  # how many times as long a host is given
TIMEOUT = 10.0 * PATIENCE  # seconds that one answer may take

DEVICES = Path("/sys/class/infiniband")
KERNEL = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortXmitDiscards": "port_xmit_discards",
}


def up() -> float:
    """Return seconds since init was started: in a container its own age, not the machine's."""
    started = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(Path("/proc/uptime").read_text().split()[0]) - started


def run(*argv: str) -> tuple[int, str]:
    """Return the exit code and all output."""
    code, stdout, stderr = ask_tool(*argv, seconds=TIMEOUT)
    return code, stdout + stderr


def from_kernel(port: Path) -> str:
    """Return the kernel's counters of a port in Ethernet mode, as perfquery prints them; empty of any other port.

    Management datagrams do not reach such a port. Its counters stop where perfquery's plain ones do.
    """
    try:
        if (port / "link_layer").read_text().strip() != "Ethernet":
            return ""
        counters = {name: int((port / "counters" / file).read_text()) for name, file in KERNEL.items()}
    except (OSError, ValueError):
        return ""
    return "# Counters of the kernel\n" + "".join(f"{name}:.....{value}\n" for name, value in counters.items())


def sample(names: list[str], ask: Ask) -> None:
    for name in names:
        at = time.monotonic()
        code, output = ask("perfquery", "-x", "-C", name, "-P", "1")
        if code != 0 or "SymbolErrorCounter" not in output:
            code, output = ask("perfquery", "-C", name, "-P", "1")
        if code != 0 and (counted := from_kernel(DEVICES / name / "ports" / "1")):
            code, output = 0, counted
        sys.stdout.write(f"=== {name} at {at:.3f} exit {code}\n{output}")


def main(seconds: Optional[float], ask: Ask = run) -> int:
    """Print the document, with one reading where `seconds` is None; `ask` runs a tool. Return the exit code."""
    code, output = ask("ibstat", "-l")
    if code != 0:
        sys.stderr.write(output)
        return code
    names = output.split()
    sys.stdout.write(f"=== up {up():.1f}\n")
    sample(names, ask)
    if seconds is None:
        return 0
    time.sleep(seconds)  # from the end of the first round on: no adapter has less between its readings
    sample(names, ask)
    return 0


if __name__ == "__main__":
    sys.exit(main(None if sys.argv[1] == "once" else float(sys.argv[1])))
