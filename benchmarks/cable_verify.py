"""What `clusterctl cable verify` costs, whole process from start to exit, compared with `ibnetdiscover --diff`.

    python -m benchmarks.cable_verify [--hosts 512 --hosts 4096] [--radix 64]

Of 16,384 hosts, with switches of 128 ports, there are 393,216 cables.

For each size a three-tier plan of 8 rails is generated, and a recorded fabric written with 20 pairs of cables swapped
and 5 cables missing. `ibnetdiscover --diff` compares a simulated fabric with a recorded one, where ibsim is installed
and the fabric fits into it; it prints differing lines, without explaining them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl_lab.emulators.fabric.process import preload

RAILS, RADIX, SWAPS, MISSING = 8, 64, 20, 5
LARGEST_SIMULATED = 20_000
CLI = (sys.executable, "-m", "clusterctl_cli.main")
Cable = tuple[PortName, PortName]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds on the wall, seconds of processor, MiB resident at most, and its exit status."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    status: int

    def __str__(self) -> str:
        return f"{self.wall_s:6.2f} s wall   {self.cpu_s:6.2f} s CPU   {self.peak_mib:6.0f} MiB   exit {self.status}"


def measured(argv: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    begin = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(time.monotonic() - begin, cpu, usage.ru_maxrss / 1024, process.returncode)


def broken(plan: WiringPlan, chance: random.Random) -> list[Cable]:
    """The planned cables, some of them swapped at one end, some gone."""
    cables = [(cable.source, cable.destination) for cable in plan.cables]
    chosen = chance.sample(range(len(cables)), 2 * SWAPS + MISSING)
    for one, other in zip(chosen[:SWAPS], chosen[SWAPS : 2 * SWAPS], strict=True):
        (a, b), (c, d) = cables[one], cables[other]
        cables[one], cables[other] = (a, d), (c, b)
    gone = set(chosen[2 * SWAPS :])
    return [cable for number, cable in enumerate(cables) if number not in gone]


def recorded(cables: Sequence[Cable]) -> str:
    """As `ibnetdiscover` prints it."""
    ports: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for a, b in cables:
        (near, p), (far, q) = _unit(a), _unit(b)
        ports[near][p], ports[far][q] = (far, q), (near, p)
    guids = {name: f"{0x1000 + 16 * number:016x}" for number, name in enumerate(ports)}
    kinds = {name: "H" if " " in name else "S" for name in ports}
    lines = []
    for name, links in ports.items():
        guid, kind = guids[name], kinds[name]
        description = name if kind == "H" else f"MF0;{name}:MQM9700/U1"
        lines += ["vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{guid}"]
        lines.append(
            f'Ca\t1 "H-{guid}"\t\t# "{name}"' if kind == "H" else f'Switch\t64 "S-{guid}"\t\t# "{description}"'
        )
        lines += [
            f'[{p}]({guid}) \t"{kinds[far]}-{guids[far]}"[{q}]({guids[far]}) \t\t# "{far}" lid 1 4xHDR'
            for p, (far, q) in sorted(links.items())
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


def _unit(port: PortName) -> tuple[str, int]:
    return (port.device, int(port.port)) if port.port.isdigit() else (f"{port.device} {port.port}", 1)


@contextlib.contextmanager
def simulated(net: Path, cables: Sequence[Cable]) -> Iterator[dict[str, str]]:
    """Runs ibsim with that fabric; the environment in which InfiniBand tools see it."""
    name = f"bench-{os.getpid()}"
    text = net.read_text()
    adapter = text[text.index('"H-') + 1 :].split('"', 1)[0]
    own = {**os.environ, "IBSIM_SOCKNAME": name}
    sizes = ["-N", "20000", "-S", "2000", "-P", str(4 * len(cables) + RADIX * 2000)]
    with subprocess.Popen(
        ["ibsim", "-s", *sizes, net.name],
        cwd=net.parent,
        env=own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            _wait_ready(process)
            yield {**own, "LD_PRELOAD": preload(), "SIM_HOST": adapter}
        finally:
            process.kill()


def _wait_ready(process: subprocess.Popen[bytes]) -> None:
    """Its console answers once the net is loaded."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("ibsim has no console")
    process.stdin.write(b"?\n")
    output = b""
    while b"sim>" not in output:
        chunk = process.stdout.read(65536)
        if not chunk:
            raise RuntimeError(output.decode(errors="replace"))
        output += chunk


def against_diff(folder: Path, good: Sequence[Cable], bad: Sequence[Cable]) -> Cost:
    """A cache of the good fabric, then the diff of the bad one with it."""
    (folder / "good.net").write_text(recorded(good))
    with simulated(folder / "good.net", good) as environment:
        measured(["ibnetdiscover", "--cache", str(folder / "cache")], environment)
    with simulated(folder / "fabric.txt", bad) as environment:
        return measured(["ibnetdiscover", "--diff", str(folder / "cache")], environment)


def compare(hosts: int, radix: int, folder: Path) -> None:
    plan_file, fabric_file = folder / "plan.csv", folder / "fabric.txt"
    shape = ["--hosts", str(hosts), "--rails", str(RAILS), "--radix", str(radix), "--tiers", "3"]
    subprocess.run([*CLI, "cable", "plan", *shape, "--out", str(plan_file)], check=True, stdout=subprocess.DEVNULL)
    plan = decode_plan(plan_file.read_bytes(), file=str(plan_file))
    bad = broken(plan, random.Random(hosts))
    fabric_file.write_text(recorded(bad))
    print(f"{hosts} hosts, {len(plan.cables)} cables planned, {len(bad)} observed")
    verify = [*CLI, "cable", "verify", "--fabric", str(fabric_file), "--json"]
    print(f"  cable verify --plan    {measured([*verify, '--plan', str(plan_file)])}")
    print(f"  cable verify (no plan) {measured(verify)}")
    if shutil.which("ibsim") and shutil.which("ibnetdiscover") and len(bad) <= LARGEST_SIMULATED:
        good = [(cable.source, cable.destination) for cable in plan.cables]
        print(f"  ibnetdiscover --diff   {against_diff(folder, good, bad)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, action="append", help="default: 512 and 4096")
    parser.add_argument("--radix", type=int, default=RADIX)
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    options = parser.parse_args()
    for hosts in options.hosts or (512, 4096):
        with tempfile.TemporaryDirectory() as folder:
            compare(hosts, options.radix, Path(folder))


if __name__ == "__main__":
    main()
