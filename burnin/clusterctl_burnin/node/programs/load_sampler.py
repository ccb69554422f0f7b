"""Runs on a node, as the built-in probe `load-sampler INTERVAL SLOW LIMIT [NAME]`: samples the node while loads run.

Standard library only, Python 3.9. It writes to no file and changes nothing. `load-samples` asks it over an abstract
Unix socket whether it has begun, and after each load for the document; what comes then is of the next load. It ends
with its session, and after LIMIT seconds. A second sampler takes the place of the first one; it has another NAME, so
that one that ends cannot answer for one that begins.

Every INTERVAL seconds it reads the kernel's new messages (/dev/kmsg), the port counters of the adapters and the carrier
losses of Ethernet ports; every SLOW seconds PCIe AER counters, EDAC counters, adapter temperatures and how congested
the ports are, which cost more.
nvidia-smi runs as one process that prints a row per GPU and INTERVAL, and once each SLOW seconds for the NVLinks.
The document holds what rose, with the second of it, and the highest values: its size is bounded.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Optional, Sequence

ADDRESS = "\0clusterctl-load-sampler"
READY, DOCUMENT, END = b"ready %s\n", b"document\n", b"end\n"  # what a peer asks for
VERSION = 1
MOST_LINES, LINE_LENGTH = 4000, 1000  # of the kernel log
OVERLAP = 30.0  # seconds of the kernel log that the next load has, too
MOST_RISES = 50  # of one counter; further ones are only summed
RECORD = 8192  # bytes that one record of /dev/kmsg has at most (CONSOLE_EXT_LOG_MAX of the kernel)
FACILITIES = ("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news")
LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
PORT = (
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
)
CONGESTION = (
    "counters/port_xmit_wait",
    "hw_counters/np_ecn_marked_roce_packets",
    "hw_counters/rp_cnp_handled",
)
"""Ticks in which a port had to wait; of RoCE, packets that came with ECN's mark and notices that slowed a sender."""
AER = ("correctable", "nonfatal", "fatal")
EDAC = ("dimm_ce_count", "dimm_ue_count")
GPU = (
    "index,temperature.gpu,temperature.memory,power.draw,clocks.sm,"
    "ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.volatile.total"
)
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the second until driver 535
GPU_GAUGES = {"temperature": 1, "memory_temperature": 2, "power": 3, "sm_clock": 4}  # by the number of their cell
GPU_COUNTERS = {"corrected": 5, "uncorrected": 6}
LINK = re.compile(r"\s*Link \d+: [^:]+: (\d+)")
IDLE = 1  # the lowest bit of the clock event reasons

Part = tuple[str, str]  # kind and name of a part


class Series:
    """What the counters and gauges of all parts did since the load began."""

    def __init__(self) -> None:
        self.counters: dict[Part, dict[str, dict[str, Any]]] = {}
        self.gauges: dict[Part, dict[str, dict[str, Any]]] = {}
        self.reasons: dict[str, dict[str, dict[str, Any]]] = {}

    def count(self, part: Part, name: str, value: int, second: float) -> None:
        """Add the reading of a counter; one that fell was reset, and has counted since then."""
        known = self.counters.setdefault(part, {})
        if name not in known:
            known[name] = {"last": value, "rose": 0, "rises": [], "reset": False}
            return
        one = known[name]
        by, one["last"] = value - one["last"], value
        if by < 0:
            one["reset"], by = True, value
        if by > 0:
            one["rose"] += by
            if len(one["rises"]) < MOST_RISES:
                one["rises"].append([round(second, 1), by])

    def gauge(self, part: Part, name: str, value: float, second: float) -> None:
        """Add the reading of a gauge; the highest and the lowest are kept."""
        known = self.gauges.setdefault(part, {})
        one = known.setdefault(name, {"high": value, "at": round(second, 1), "low": value})
        if value > one["high"]:
            one["high"], one["at"] = value, round(second, 1)
        one["low"] = min(one["low"], value)

    def reason(self, gpu: str, mask: str, second: float) -> None:
        """Count an answer with these clock event reasons."""
        one = self.reasons.setdefault(gpu, {}).setdefault(mask, {"samples": 0, "first": round(second, 1)})
        one["samples"] += 1

    def again(self) -> None:
        """Begin with the next load: a counter goes on from its last reading."""
        for known in self.counters.values():
            for one in known.values():
                one.update(rose=0, rises=[], reset=False)
        self.gauges, self.reasons = {}, {}

    def document(self) -> dict[str, Any]:
        """Return how many parts of each kind were read, those whose counters rose, and all gauges."""
        read = collections.Counter(kind for kind, _ in self.counters)
        moved = [
            {"kind": kind, "part": part, "counter": name, **{key: one[key] for key in ("rose", "rises", "reset")}}
            for (kind, part), known in sorted(self.counters.items())
            for name, one in sorted(known.items())
            if one["rose"] or one["reset"]
        ]
        highs = [
            {"kind": kind, "part": part, "gauge": name, **one}
            for (kind, part), known in sorted(self.gauges.items())
            for name, one in sorted(known.items())
        ]
        return {"read": dict(read), "counters": moved, "gauges": highs, "reasons": self.reasons}


class Files:
    """Files of sysfs. Those that are read often stay open: each is read again from its beginning."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}

    def text(self, path: Path | str, *, keep: bool = False) -> str:
        """Return the text. Raises `OSError`. `keep`: the file stays open."""
        name = str(path)
        descriptor = self.open.get(name, -1)
        if descriptor < 0:
            descriptor = os.open(name, os.O_RDONLY)
        try:
            return os.pread(descriptor, 4096, 0).decode("ascii", "replace")
        finally:
            if keep:
                self.open[name] = descriptor
            else:
                os.close(descriptor)


class KernelLog:
    """Follows /dev/kmsg from now on (Documentation/ABI/testing/dev-kmsg of Linux)."""

    def __init__(self, path: Path) -> None:
        self.lines: list[list[Any]] = []
        self.lost = self.dropped = 0
        self.earlier, self.error = 0.0, ""
        self.descriptor = -1
        try:
            self.descriptor = os.open(str(path), os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.descriptor, 0, os.SEEK_END)
        except OSError as error:
            self.error = f"{path}: {error.strerror}"

    def again(self, second: float) -> None:
        """Begin with the next load. The last messages stay: `dmesg` was read a moment before, in the same session."""
        self.earlier = 0.0 if self.lost or self.dropped else min(OVERLAP, second + self.earlier)
        self.lines = [[round(at - second, 1), *rest] for at, *rest in self.lines if at >= second - self.earlier]
        self.lost = self.dropped = 0

    def read(self, second: float) -> None:
        """Keep what was logged since the last call."""
        while self.descriptor >= 0 and not self.error:
            try:
                record = os.read(self.descriptor, RECORD)
            except BlockingIOError:
                return
            except BrokenPipeError:  # overwritten before it was read
                self.lost += 1
                continue
            except OSError as error:
                self.error = str(error.strerror)
                return
            if not record:
                return
            self.add(record.decode("utf-8", "replace"), second)

    def add(self, record: str, second: float) -> None:
        for line in record.splitlines():
            head, mark, text = line.partition(";")
            priority = head.partition(",")[0]
            if not mark or not priority.isdigit():
                continue  # a property of the message before
            if len(self.lines) >= MOST_LINES:
                self.dropped += 1
                continue
            facility, level = int(priority) >> 3, LEVELS[int(priority) & 7]
            name = FACILITIES[facility] if facility < len(FACILITIES) else "local"
            self.lines.append([round(second, 1), name, level, text[:LINE_LENGTH]])

    def document(self) -> dict[str, Any]:
        counts = {"lost": self.lost, "dropped": self.dropped, "earlier": self.earlier}
        return {"lines": self.lines, **counts, "error": self.error}


class Tool:
    """A program that runs in parallel with the loop; its output is taken line by line and never waited for."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.rest = b""
        self.error = ""

    def start(self) -> None:
        try:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            self.error = f"{self.argv[0]}: {error.strerror}"
            return
        if self.process.stdout:
            os.set_blocking(self.process.stdout.fileno(), False)
        self.rest = b""

    def lines(self) -> Iterator[str]:
        """Yield the whole lines that have come."""
        pipe = self.process.stdout if self.process else None
        while pipe is not None:
            try:
                chunk = os.read(pipe.fileno(), 1 << 16)
            except (BlockingIOError, ValueError):
                return
            if not chunk:
                return
            *whole, self.rest = (self.rest + chunk).split(b"\n")
            self.rest = self.rest[-RECORD:]
            yield from (line.decode("utf-8", "replace") for line in whole)

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        if self.process is not None and not self.ended:
            self.process.kill()


class Gpus:
    """What nvidia-smi reports of the GPUs, in rows and, each SLOW seconds, of their NVLinks."""

    def __init__(self, series: Series, interval: float) -> None:
        self.series, self.interval = series, interval
        self.reasons = 0
        self.rows, self.last = 0, 0.0
        self.error = "" if installed("nvidia-smi") else "nvidia-smi is not installed"
        self.table = self.tool()
        self.links = Tool(["nvidia-smi", "nvlink", "-e"])
        self.gpu = ""
        self.sums: dict[str, int] = collections.Counter()

    def tool(self) -> Tool:
        loop = f"{max(1, round(self.interval))}"
        fields = f"--query-gpu={GPU},{REASONS[self.reasons]}"
        return Tool(["nvidia-smi", fields, "--format=csv,noheader,nounits", "-l", loop])

    def start(self) -> None:
        if not self.error:
            self.table.start()

    def read(self, second: float) -> None:
        for line in self.table.lines():
            self.row(line, second)
        ended = self.links.process is not None and self.links.ended
        for line in self.links.lines():
            self.link(line)
        if ended:
            self.add_links(second)
        if not self.error and self.table.ended:
            self.error = self.table.error or "nvidia-smi ended while the load ran"

    def row(self, line: str, second: float) -> None:
        cells = [cell.strip() for cell in line.split(",")]
        if "not a valid field" in line and self.reasons + 1 < len(REASONS):
            self.table.kill()
            self.reasons += 1
            self.table = self.tool()
            self.table.start()
            return
        if len(cells) != GPU.count(",") + 2 or not cells[0].isdigit():
            self.error = self.error or (f"nvidia-smi: {line.strip()[:200]}" if line.strip() else "")
            return
        self.rows, self.last = self.rows + 1, second
        self.measured(cells, second)

    def measured(self, cells: list[str], second: float) -> None:
        gpu, mask = cells[0], cells[-1].lower()
        busy = not number(mask) & IDLE
        for name, at in GPU_GAUGES.items():
            with contextlib.suppress(ValueError):  # [N/A]
                if name != "sm_clock" or busy:
                    self.series.gauge(("gpu", gpu), name, float(cells[at]), second)
        for name, at in GPU_COUNTERS.items():
            if cells[at].isdigit():
                self.series.count(("gpu_ecc", gpu), name, int(cells[at]), second)
        self.series.reason(gpu, mask, second)

    def ask_links(self) -> None:
        if not self.error and self.links.ended:
            self.gpu, self.sums = "", collections.Counter()
            self.links.start()

    def link(self, line: str) -> None:
        if line.startswith("GPU "):
            self.gpu = line[4:].partition(":")[0]
        elif match := LINK.match(line):
            self.sums[self.gpu] += int(match[1])

    def add_links(self, second: float) -> None:
        if self.links.process is not None and self.links.process.returncode == 0:
            for gpu, errors in self.sums.items():
                self.series.count(("nvlink", gpu), "errors", errors, second)
        self.links.process = None

    def trouble(self, second: float) -> str:
        """Return why there are no rows, or none any more; empty where there are."""
        if self.error or second < 2 * self.interval + 10:
            return self.error
        silent = second - self.last
        return f"nvidia-smi printed nothing for {silent:.0f} s" if silent > max(30.0, 5 * self.interval) else ""


def installed(name: str) -> bool:
    """Return whether there is such a program. The import of shutil, which has this too, costs 3 ms."""
    return any(os.access(f"{folder}/{name}", os.X_OK) for folder in os.get_exec_path())


def port_name(device: str, number: str) -> str:
    """Return the adapter's name, and with it the number of any port but its first: each has counters of its own."""
    return device if number == "1" else f"{device}/{number}"


def number(mask: str) -> int:
    try:
        return int(mask, 16)
    except ValueError:
        return 0


class Sampler:
    """Reads all sources below `root`, each at its pace."""

    def __init__(self, root: Path, interval: float, slow: float) -> None:
        self.root, self.interval, self.slow = root, interval, slow
        self.series, self.files = Series(), Files()
        self.kernel = KernelLog(root / "dev/kmsg")
        self.gpus = Gpus(self.series, interval)
        self.used, self.began = 0.0, time.monotonic()
        self.again()
        self.adapters = self.adapters_by_address()
        self.fast = [*self.ports(), *self.carriers()]
        self.costly: list[tuple[Part, str, Path | str]] = [*self.aer(), *self.edac(), *self.congestion()]
        self.sensors = list(self.temperatures())

    def again(self) -> None:
        """Begin with the next load: its document has nothing of the one before."""
        self.kernel.again(self.second)
        self.began, self.wall = time.monotonic(), time.time()
        self.errors: dict[str, str] = {}
        self.samples, self.next_slow, self.next_links = 0, 0.0, 0.0
        self.series.again()
        self.gpus.rows, self.gpus.last = 0, 0.0

    @property
    def second(self) -> float:
        return time.monotonic() - self.began

    def adapters_by_address(self) -> dict[str, str]:
        """Return the names of the InfiniBand devices, by PCI address."""
        folders = (self.root / "sys/class/infiniband").glob("*")
        return {(folder / "device").resolve().name: folder.name for folder in folders}

    def ports(self) -> Iterator[tuple[Part, str, Path]]:
        for folder in sorted((self.root / "sys/class/infiniband").glob("*/ports/*/counters")):
            port = port_name(folder.parents[2].name, folder.parent.name)
            yield from ((("port", port), name, folder / name) for name in PORT if (folder / name).exists())

    def carriers(self) -> Iterator[tuple[Part, str, Path]]:
        for folder in sorted((self.root / "sys/class/net").glob("*")):
            file = folder / "carrier_down_count"
            usb = (folder / "device/subsystem").resolve().name == "usb"  # the BMC's own port to the host
            if (folder / "device").exists() and file.exists() and not usb:
                yield ("ethernet", folder.name), "carrier_down", file

    def congestion(self) -> Iterator[tuple[Part, str, Path]]:
        for folder in sorted((self.root / "sys/class/infiniband").glob("*/ports/*")):
            port = port_name(folder.parents[1].name, folder.name)
            for name in CONGESTION:
                if (folder / name).exists():
                    yield ("congestion", port), (folder / name).name, folder / name

    def aer(self) -> Iterator[tuple[Part, str, str]]:
        """Yield the counters of hundreds of devices: by pathlib that takes 10 ms. A device has all three or none."""
        folder = f"{self.root}/sys/bus/pci/devices"
        with contextlib.suppress(FileNotFoundError):
            for device in sorted(os.listdir(folder)):  # noqa: PTH208 — the import of pathlib costs 3 ms
                if os.path.exists(f"{folder}/{device}/aer_dev_{AER[0]}"):  # noqa: PTH110 — likewise
                    yield from ((("pci", device), kind, f"{folder}/{device}/aer_dev_{kind}") for kind in AER)

    def edac(self) -> Iterator[tuple[Part, str, Path]]:
        base = self.root / "sys/devices/system/edac/mc"
        for folder in sorted([*base.glob("mc*/dimm[0-9]*"), *base.glob("mc*/rank[0-9]*")]):
            yield from ((("memory", folder.name), name, folder / name) for name in EDAC if (folder / name).exists())

    def temperatures(self) -> Iterator[tuple[Part, str, Path, Optional[float]]]:
        """Yield the sensors of the mlx5 driver, in Linux from 6.6 on, with the adapter's own threshold."""
        for folder in sorted((self.root / "sys/class/hwmon").glob("*")):
            with contextlib.suppress(OSError):
                if self.files.text(folder / "name").strip() != "mlx5":
                    continue
                address = (folder / "device").resolve().name
                for sensor in sorted(folder.glob("temp*_input")):
                    stem = sensor.name[: -len("_input")]
                    label = self.word(folder / f"{stem}_label") or stem
                    critical = self.word(folder / f"{stem}_crit")
                    limit = int(critical) / 1000 if critical.isdigit() else None
                    yield ("adapter", self.adapters.get(address, address)), label, sensor, limit

    def word(self, path: Path) -> str:
        try:
            return self.files.text(path).strip()
        except OSError:
            return ""

    def read(self, entries: Iterable[tuple[Part, str, Path | str]], *, keep: bool = False) -> None:
        for part, name, path in entries:
            try:
                words = self.files.text(path, keep=keep).split()
                self.series.count(part, name, int(words[-1]), self.second)
            except (OSError, ValueError, IndexError) as error:
                self.errors.setdefault(part[0], f"{path}: {getattr(error, 'strerror', None) or 'no number'}")

    def read_sensors(self) -> None:
        for part, name, path, limit in self.sensors:
            try:
                self.series.gauge(part, name, int(self.files.text(path)) / 1000, self.second)
            except (OSError, ValueError) as error:
                self.errors.setdefault("adapter", f"{path}: {getattr(error, 'strerror', None) or 'no number'}")
                continue
            if limit is not None:
                self.series.gauges[part][name]["limit"] = limit

    def sample(self, *, last: bool = False) -> None:
        """Read what is due; with `last` everything."""
        self.samples += 1
        self.kernel.read(self.second)
        self.gpus.read(self.second)
        self.read(self.fast, keep=True)
        if last or self.second >= self.next_slow:
            self.next_slow = self.second + self.slow
            self.read(self.costly)
            self.read_sensors()
        if not last and self.second >= self.next_links:
            self.next_links = self.second + self.slow
            self.gpus.ask_links()

    def document(self) -> dict[str, Any]:
        before, self.used = self.used, time.process_time()
        trouble = self.gpus.trouble(self.second)
        errors = {**self.errors, **({"gpu": trouble} if trouble else {})}
        return {
            "version": VERSION,
            "began": self.wall,
            "seconds": round(self.second, 1),
            "interval": self.interval,
            "samples": self.samples,
            "processor_seconds": round(self.used - before, 3),
            "kernel": self.kernel.document(),
            "adapters": self.adapters,
            "sensors": len(self.sensors),
            "gpu_rows": self.gpus.rows,
            "errors": errors,
            **self.series.document(),
        }


def trusted(peer: socket.socket) -> bool:
    """Return whether root or our own user asks."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return uid in (0, os.getuid())


def listen(address: str) -> socket.socket:
    """Return the socket to be asked on; a sampler that was left behind is ended first. Raises `OSError`."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    for _ in range(50):
        try:
            server.bind(address)
        except OSError:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                other.settimeout(2.0)
                other.connect(address)
                other.sendall(END)
                other.recv(1)
            time.sleep(0.1)
        else:
            server.listen(4)
            return server
    server.bind(address)
    return server


def main(argv: Sequence[str], root: Path = Path("/"), address: str = ADDRESS) -> int:
    """Sample until the limit is reached, or another sampler takes the place."""
    interval, slow, limit = map(float, argv[:3])
    ready = READY % "".join(argv[3:]).encode()
    server = listen(address)
    sampler = Sampler(root, interval, slow)
    sampler.gpus.start()
    try:
        serve(sampler, server, limit, ready)
    finally:
        sampler.gpus.table.kill()
        sampler.gpus.links.kill()
    return 0


def serve(sampler: Sampler, server: socket.socket, limit: float, ready: bytes) -> None:
    """Sample at a steady pace, and hand out a document for each load; return once a trusted peer ends it."""
    due = time.monotonic()
    end = due + limit
    while time.monotonic() < end:
        if time.monotonic() >= due:
            due = max(due + sampler.interval, time.monotonic())
            sampler.sample()
        if not select.select([server], [], [], max(0.0, min(due, end) - time.monotonic()))[0]:
            continue
        peer, _ = server.accept()
        with peer, contextlib.suppress(OSError):
            peer.settimeout(10.0)
            if not trusted(peer):
                continue
            asked = peer.recv(16)
            if asked == END:
                return
            if asked == ready:
                peer.sendall(ready)
            if asked == DOCUMENT:
                sampler.sample(last=True)
                document = json.dumps(sampler.document()).encode()
                sampler.again()
                peer.sendall(document)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
