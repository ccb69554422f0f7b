"""load-sampler: what loads do to this host's parts, sampled each second; `load-samples` asks for it after each load.

Stands in for a burn-in program that would read the controller's own kernel log, GPUs and adapters. The document is that
of the program (burnin/clusterctl_burnin/node/programs/load_sampler.py); its counters are those of the kernel's ABI
(sysfs-bus-pci-devices-aer, sysfs-class-infiniband), its temperatures those of the mlx5 driver (hwmon.c of Linux 6.6).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, driver_version, load
from clusterctl_lab.emulators.host_tools.host.loaded import FABRIC, GPUS, loaded, loads

ADDRESS = "\0" + os.environ.get("CLUSTERCTL_LAB_SAMPLER", "clusterctl-load-sampler")
WARM_C, HOT_C, CRITICAL_C, HOT_MEMORY_C = 62.0, 108.0, 102.0, 99.0
AT_POWER_LIMIT = "0x0000000000000004"


def main(argv: Sequence[str]) -> int:
    if len(argv) != 4:
        sys.stderr.write("the lab's load-sampler takes INTERVAL SLOW LIMIT NAME\n")
        return 2
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    for _ in range(100):
        with contextlib.suppress(OSError):
            server.bind(ADDRESS)
            break
        _end_other()
        time.sleep(0.05)
    server.listen(4)
    _sample(server, float(argv[0]), float(argv[2]), f"ready {argv[3]}\n".encode())
    return 0


def _end_other() -> None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.settimeout(2)
        other.connect(ADDRESS)
        other.sendall(b"end\n")
        other.recv(1)


def _sample(server: socket.socket, interval: float, limit: float, begun: bytes) -> None:
    """Count, from one document that is asked for to the next; return once another sampler ends this one."""
    end = time.monotonic() + limit
    last = dict(_counters(load()))
    began, wall, samples = time.monotonic(), time.time(), 1
    risen: dict[tuple[str, str, str], list[tuple[float, int]]] = {}
    while time.monotonic() < end:
        ready, _, _ = select.select([server], [], [], interval)
        second = round(time.monotonic() - began, 1)
        for key, value in _counters(load()):
            if value > last.get(key, value):
                risen.setdefault(key, []).append((second, value - last[key]))
            last[key] = value
        samples += 1
        document = _document(load(), wall, (second, interval, samples), risen)
        asked = _answered(server, begun, document) if ready else b""
        if asked == b"end\n":
            return
        if asked == b"document\n":
            began, wall, samples, risen = time.monotonic(), time.time(), 0, {}


def _answered(server: socket.socket, begun: bytes, document: dict[str, object]) -> bytes:
    """Return what the peer asked for: whether the sampler has begun, the document, or its end."""
    asked = b""
    peer, _ = server.accept()
    with peer, contextlib.suppress(OSError):
        peer.settimeout(10)
        asked = peer.recv(16)
        if asked == begun:
            peer.sendall(begun)
        if asked == b"document\n":
            peer.sendall(json.dumps(document).encode())
    return asked


def _counters(facts: Facts) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Yield counters that loads move, by kind, part and name."""
    for gpu in facts.gpus:
        yield ("pci", gpu.address, "nonfatal"), loads(GPUS) if gpu.shows("aer") else 0
        yield ("nvlink", str(gpu.index), "errors"), int(gpu.shows("nvlink"))
        yield ("gpu_ecc", str(gpu.index), "uncorrected"), int(gpu.shows("ecc"))
    for hca in facts.hcas:
        yield ("port", hca.name, "link_downed"), hca.downs


def _document(
    facts: Facts,
    wall: float,
    seen: tuple[float, float, int],
    risen: dict[tuple[str, str, str], list[tuple[float, int]]],
) -> dict[str, object]:
    second, interval, samples = seen
    gpus = [gpu for gpu in facts.gpus if gpu.on_bus] if driver_version() else []
    counters = [
        {"kind": kind, "part": part, "counter": name, "rose": sum(by for _, by in at), "rises": at, "reset": False}
        for (kind, part, name), at in sorted(risen.items())
    ]
    gauges = [
        *(
            _gauge("adapter", hca.name, "asic", HOT_C if hca.load_hot and loaded(FABRIC) else WARM_C)
            for hca in facts.hcas
        ),
        *(_gauge("gpu", str(gpu.index), "power", 699.0) for gpu in gpus),
        *(
            _gauge("gpu", str(gpu.index), "memory_temperature", HOT_MEMORY_C if gpu.shows("hot-memory") else WARM_C)
            for gpu in gpus
        ),
    ]
    return {
        "version": 1,
        "began": wall,
        "seconds": second,
        "interval": interval,
        "samples": samples,
        "processor_seconds": 0.0,
        "kernel": {"lines": [], "lost": 0, "dropped": 0, "error": "the lab's hosts have no kernel log of their own"},
        "adapters": {hca.pci: hca.name for hca in facts.hcas},
        "sensors": len(facts.hcas),
        "gpu_rows": samples * len(gpus),
        "errors": {} if gpus or not facts.gpus else {"gpu": "nvidia-smi ended while the load ran"},
        "read": {"pci": len(facts.gpus) + len(facts.hcas), "port": len(facts.hcas)},
        "counters": counters,
        "gauges": gauges,
        "reasons": {str(gpu.index): {AT_POWER_LIMIT: {"samples": samples, "first": 0.0}} for gpu in gpus},
    }


def _gauge(kind: str, part: str, name: str, high: float) -> dict[str, object]:
    limit = {"limit": CRITICAL_C} if kind == "adapter" else {}
    return {"kind": kind, "part": part, "gauge": name, "high": high, "at": 1.0, "low": high, **limit}
