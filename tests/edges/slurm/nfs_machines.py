"""An NFS server and its clients as virtual machines: Debian's kernel in software emulation, and a shell as their only program.

The server is nfsd of the kernel, with an export that the shell writes into the kernel's caches (nfsd(7), rpc.nfsd): NFSv4.2 needs neither rpcbind nor mountd.
Each client writes a file, and forces each block to the server, as a rank that saves a checkpoint does.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PACKAGE = "linux-image-cloud-amd64"
MODULES = ("virtio_pci", "virtio_net", "nfsd", "nfsv4")
TOOLS = ("qemu-system-x86_64", "busybox", "gzip", "apt-get", "dpkg", "setpriv")
SERVER = "10.0.0.9"
FOREVER = 2147483647
FLAGS = 0x2 | 0x10 | 0x400 | 0x2000
"""Any port, async, no subtree check, a number for the file system. Source: linux, include/uapi/linux/nfsd/export.h"""
COMMON = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module || echo "no module $module"; done
echo "booted-at $(date +%s) $(cut -d' ' -f1 /proc/uptime)"
ip link set lo up; ip link set eth0 up; ip addr add ADDRESS/24 dev eth0
"""
SERVE = f"""\
mkdir /export; mount -t tmpfs export /export; mount -t nfsd nfsd /proc/fs/nfsd
echo 10 > /proc/fs/nfsd/nfsv4leasetime; echo 10 > /proc/fs/nfsd/nfsv4gracetime
echo "-2 -3 +4" > /proc/fs/nfsd/versions
(while :; do for client in CLIENTS; do echo "nfsd $client {FOREVER} *" > /proc/net/rpc/auth.unix.ip/channel; done
echo "* /export {FOREVER} {FLAGS} 65534 65534 0" > /proc/net/rpc/nfsd.export/channel
echo "* 1 \\\\x00000000 {FOREVER} /export" > /proc/net/rpc/nfsd.fh/channel; sleep 1; done) 2>/dev/null &
echo "tcp 2049" > /proc/fs/nfsd/portlist
echo 4 > /proc/fs/nfsd/threads
echo "it serves"
while :; do sleep 60; done
"""
SAVE = f"""\
mkdir /data
until mount -t nfs4 -o vers=4.2,addr={SERVER},clientaddr=ADDRESS,hard,timeo=50,retrans=2 {SERVER}:/ /data; do sleep 1; done
echo "it is mounted"
(while :; do dd if=/dev/zero of=/data/ADDRESS bs=65536 count=4 conv=fsync 2>/dev/null && echo "it has saved"; sleep 1; done) &
saver=$!
while :; do sleep 5; for task in /proc/[0-9]*; do
case "$(cat $task/wchan 2>/dev/null)" in *rpc_*|*nfs*|*folio*|*page_bit*) echo "stack-of $(cat $task/comm)"; cat $task/stack;; esac; done; done
"""


def missing() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


@dataclass(frozen=True)
class Kernel:
    """A kernel's image, and the folder of its modules."""

    image: Path
    modules: Path


def fetch_kernel(folder: Path) -> Kernel | None:
    """Take Debian's kernel for virtual machines from its archive; None where the archive is out of reach."""
    found = subprocess.run(
        ["apt-cache", "depends", "--important", PACKAGE], capture_output=True, text=True, check=False
    )
    names = re.findall(r"Depends: (linux-image-\S+)", found.stdout)
    if (
        not names
        or subprocess.run(["apt-get", "download", names[0]], cwd=folder, capture_output=True, check=False).returncode
    ):
        return None
    (package,) = folder.glob("linux-image-*.deb")
    subprocess.run(["dpkg", "-x", str(package), str(folder / "kernel")], check=True)
    (image,) = (folder / "kernel/boot").glob("vmlinuz-*")
    return Kernel(image, folder / "kernel/lib/modules")


def _in_order(kernel: Kernel, names: Iterable[str]) -> list[Path]:
    """Return the files of modules, each after those that it needs."""
    files = {path.stem.replace("-", "_"): path for path in kernel.modules.rglob("*.ko")}
    found: dict[str, Path] = {}

    def add(name: str) -> None:
        needs = re.search(rb"depends=([^\0]*)\0", files[name].read_bytes())
        for other in needs[1].decode().replace("-", "_").split(",") if needs else ():
            if other and other not in found:
                add(other)
        found[name] = files[name]

    for one in names:
        add(one)
    return list(found.values())


def initrd(kernel: Kernel, folder: Path, script: str) -> Path:
    """Pack busybox with its libraries, the modules, and the script that the kernel starts."""
    root = folder / "root"
    for name in ("bin", "modules", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin/busybox")
    linked = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+)", linked):
        (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.lstrip("/"))
    modules = _in_order(kernel, MODULES)
    for module in modules:
        shutil.copy(module, root / "modules" / module.name)
    (root / "modules/order").write_text("\n".join(module.name for module in modules) + "\n")
    (root / "init").write_text(script)
    (root / "init").chmod(0o755)
    packed = folder / "initrd.gz"
    subprocess.run(
        f"find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 > {packed}", shell=True, cwd=root, check=True
    )
    return packed


@dataclass
class Machine:
    name: str
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def console(self) -> str:
        file = self.folder / "console.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def freeze(self) -> None:
        """Stop the machine, as a server that hangs: it answers nothing, and closes nothing."""
        self.process.send_signal(signal.SIGSTOP)

    @property
    def kernel_log(self) -> str:
        """Return the kernel's messages as journalctl prints them, with the times that the machine's clock gives."""
        began = re.search(r"booted-at (\d+) ([\d.]+)", self.console)
        assert began is not None, self.console[-2000:]
        boot = int(began[1]) - float(began[2])
        lines = (re.match(r"\[ *(\d+\.\d+)\] (.*)", line) for line in self.console.splitlines())
        return "".join(
            f"{datetime.fromtimestamp(boot + float(line[1]), UTC):%Y-%m-%dT%H:%M:%S.%f}+00:00 {self.name} kernel: {line[2]}\n"
            for line in lines
            if line is not None
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def _start(kernel: Kernel, folder: Path, name: str, address: str, work: str, port: int) -> Machine:
    folder.mkdir()
    packed = initrd(kernel, folder, (COMMON + work).replace("ADDRESS", address))
    number = int(address.rpartition(".")[2])
    argv = [
        *(
            "setpriv",
            "--pdeathsig",
            "KILL",
            "qemu-system-x86_64",
            "-accel",
            "tcg,thread=multi,tb-size=128",
            "-M",
            "q35",
        ),
        *("-cpu", "Nehalem", "-smp", "1", "-m", "384", "-display", "none", "-nodefaults", "-no-reboot"),
        *(
            "-kernel",
            str(kernel.image),
            "-initrd",
            str(packed),
            "-append",
            "console=ttyS0 mitigations=off no_timer_check panic=1 loglevel=7",
        ),
        *(
            "-serial",
            f"file:{folder / 'console.log'}",
            "-netdev",
            f"socket,id=n0,mcast=230.0.0.1:{port},localaddr=127.0.0.1",
        ),
        *("-device", f"virtio-net-pci,netdev=n0,mac=52:54:00:00:01:{number:02x},romfile="),
    ]
    return Machine(name, folder, subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


@contextmanager
def nfs_machines(
    kernel: Kernel, folder: Path, names: Sequence[str], port: int
) -> Iterator[tuple[Machine, list[Machine]]]:
    """Start a server and a client of each name; nothing of them runs afterwards."""
    addresses = {name: f"10.0.0.{number}" for number, name in enumerate(names, start=1)}
    machines: list[Machine] = []
    try:
        serve = SERVE.replace("CLIENTS", " ".join(addresses.values()))
        machines.append(_start(kernel, folder / "server", "server", SERVER, serve, port))
        machines.extend(_start(kernel, folder / name, name, address, SAVE, port) for name, address in addresses.items())
        yield machines[0], machines[1:]
    finally:
        for machine in machines:
            machine.stop()
