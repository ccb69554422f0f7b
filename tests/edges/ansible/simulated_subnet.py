"""A small simulated InfiniBand subnet that lab hosts reach: one switch, one adapter a host, no subnet manager.

ibsim listens on UDP (`-r`), because its own sockets end at a host's network namespace. On the hosts OpenSM, `ibstat`
and `sminfo` are the distribution's, led to it by umad2sim.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from clusterctl_lab.emulators.fabric.process import preload
from clusterctl_lab.hosts import Skeleton
from clusterctl_lab.machine import Machine

PORT = 7172
LIBRARY = "/usr/lib/clusterctl-lab/libumad2sim.so"
SWITCH = "0000000000001000"

_DROP_IN = """\
[Service]
RuntimeDirectory=clusterctl-lab-opensm
WorkingDirectory=/run/clusterctl-lab-opensm
Environment=LD_PRELOAD={library} IBSIM_SERVER_NAME={address} IBSIM_SERVER_PORT={port} "SIM_HOST=H-{node}"
Environment=OSM_TMP_DIR=/run/clusterctl-lab-opensm OSM_CACHE_DIR=/run/clusterctl-lab-opensm
"""

_TOOL = """\
#!/bin/sh
scratch=$(mktemp -d) && cd "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT
export IBSIM_SERVER_NAME={address} IBSIM_SERVER_PORT={port} SIM_HOST=H-{node}
LD_PRELOAD={library} timeout 20 /usr/sbin/{name} "$@"
"""


def guid(index: int) -> str:
    """Of the adapter of machine number `index`; its port has the next one."""
    return f"{0x2000 + 0x10 * index:016x}"


def port_guid(index: int) -> str:
    """As `ibstat -p` prints it."""
    return f"0x{0x2001 + 0x10 * index:016x}"


def host_files(address: str, machine: Machine) -> Skeleton:
    """What leads a host's InfiniBand tools to the simulator at `address`."""
    reported = {"library": LIBRARY, "address": address, "port": PORT, "node": guid(machine.index)}
    files = {
        f"/usr/local/sbin/{name}": (_TOOL.format(name=name, **reported).encode(), 0o755)
        for name in ("ibstat", "sminfo")
    }
    unit = "/etc/systemd/system/clusterctl-opensm@.service.d/lab.conf"
    return {
        **files,
        unit: (_DROP_IN.format(**reported).encode(), 0o644),
        LIBRARY: (Path(preload()).read_bytes(), 0o644),
    }


@contextmanager
def simulated_subnet(folder: Path, hosts: Sequence[int]) -> Iterator[None]:
    """A simulator of the adapters of these machines, until the block ends."""
    (folder / "net").write_text("\n".join((_switch(hosts), *(_adapter(at, host) for at, host in enumerate(hosts, 1)))))
    ibsim = shutil.which("ibsim", path="/usr/bin:/usr/sbin") or "ibsim"
    argv = [ibsim, "-s", "-r", "-l", str(PORT), "net"]
    with (folder / "ibsim.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        time.sleep(1)
        assert process.poll() is None, (folder / "ibsim.log").read_text()
        yield
    finally:
        process.kill()
        process.wait()


def _switch(hosts: Sequence[int]) -> str:
    lines = ["vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{SWITCH}", f"switchguid=0x{SWITCH}({SWITCH})"]
    lines += [f'Switch\t8 "S-{SWITCH}"\t\t# "leaf" enhanced port 0 lid 0 lmc 0']
    lines += [f'[{at}]\t"H-{guid(host)}"[1]\t\t# "host" lid 0 4xHDR' for at, host in enumerate(hosts, 1)]
    return "\n".join([*lines, ""])


def _adapter(at: int, host: int) -> str:
    lines = ["vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{guid(host)}", f"caguid=0x{guid(host)}"]
    lines += [f'Ca\t1 "H-{guid(host)}"\t\t# "node{host:03} mlx5_0"']
    lines += [f'[1]({port_guid(host)[2:]})\t"S-{SWITCH}"[{at}]\t\t# lid 0 lmc 0 "leaf" lid 0 4xHDR']
    return "\n".join([*lines, ""])
