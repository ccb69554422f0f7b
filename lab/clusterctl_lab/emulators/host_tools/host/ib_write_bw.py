"""ib_write_bw: real bytes over TCP between the two hosts' rail interfaces, printed in perftest's format.

Server and client meet at the server's address and port, where perftest exchanges queue pairs. There the server sends
the listening address of its rail's interface; the client sends `size` x `iterations` bytes from its own rail's
interface to it. The printed figures are measured. The table and the messages follow recordings of perftest on ConnectX
(microsoft/ superbenchmark, MIT) and perftest's sources.

For a device other than the machine's own adapters (soft-RoCE in a virtual machine), the real tool answers where it is
installed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host import flows
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load
from clusterctl_lab.emulators.host_tools.host.loaded import FABRIC, mark
from clusterctl_lab.emulators.host_tools.host.power import slows_adapter

GET_ADDRESS = 0x8915  # SIOCGIFADDR, linux/sockios.h
REAL = "/usr/bin/ib_write_bw"
CHUNK = 1 << 20
TIMED_BYTES_S = 62_500_000
"""Bytes that a flow of a requested duration sends per second, 0.5 Gb/s: many of them run at once, for minutes, and at
full speed they would take all processors of the machine that carries the lab. The fabric's counters are played.
"""
STALL_S = 10.0
"""How long an adapter that is slow while other loads run stops after each message."""
RULE = "-" * 87


def main(argv: Sequence[str]) -> int:
    options = _options(argv)
    hca = next((h for h in load().hcas if h.name == options.ib_dev), None)
    if hca is None:
        if os.access(REAL, os.X_OK):
            os.execv(REAL, [REAL, *argv])  # noqa: S606 — another program's name and arguments, no shell
        sys.stderr.write(f" IB device {options.ib_dev} not found\n Unable to find the Infiniband/RoCE device\n")
        return 1
    if options.use_cuda_dmabuf and options.use_cuda is None:
        sys.stderr.write("CUDA DMA-BUF cannot be used without CUDA\n")
        return 1
    if options.use_cuda is not None and options.use_cuda not in {gpu.index for gpu in load().gpus}:
        sys.stderr.write(f"No such device ID ({options.use_cuda}) exists in system\n")
        return 1
    if not hca.plugged:
        sys.stderr.write(" Port number 1 state is Down\n Couldn't set the link layer\n")
        return 1
    mark(FABRIC)
    if options.host is None:
        iters, seconds = _serve(hca, options)
    else:
        found = _meet(options.host, options.port)
        if found is None:
            sys.stderr.write(
                f"Couldn't connect to {options.host}:{options.port}\nUnable to init the socket connection\n"
            )
            return 1
        iters, seconds = _send(hca, found, options)
    _report(hca, options, iters, seconds)
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("ib_write_bw", add_help=False)
    parser.add_argument("-d", "--ib-dev", required=True)
    parser.add_argument("-p", "--port", type=int, default=18515)
    parser.add_argument("-s", "--size", type=int, default=65536)
    parser.add_argument("-n", "--iters", type=int, default=5000)
    parser.add_argument("-D", "--duration", type=int, default=0)
    parser.add_argument("-F", "--CPU-freq", action="store_true")
    parser.add_argument("-x", "--gid-index", type=int)
    parser.add_argument("--report_gbits", action="store_true")
    parser.add_argument("--use_cuda", type=int)
    parser.add_argument("--use_cuda_dmabuf", action="store_true")
    parser.add_argument("host", nargs="?")
    return parser.parse_args(argv)


def ipv4_address(interface: str) -> str:
    """The IPv4 address of a network interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        request = struct.pack("256s", interface.encode())
        return socket.inet_ntoa(fcntl.ioctl(asker, GET_ADDRESS, request)[20:24])


def _serve(hca: Hca, options: argparse.Namespace) -> tuple[int, float]:
    """Wait for the client, receive its bytes and confirm the end; return the number of messages and the seconds."""
    with (
        socket.create_server(("", options.port), backlog=1) as meeting,
        socket.create_server((ipv4_address(hca.interface), 0)) as rail,
    ):
        sys.stdout.write(f"\n{'*' * 36}\n* Waiting for client to connect... *\n{'*' * 36}\n")
        sys.stdout.flush()
        control, _ = meeting.accept()
        with control, control.makefile("rwb") as lines:
            where = {"address": rail.getsockname()[0], "port": rail.getsockname()[1], "guid": hca.guid}
            lines.write(json.dumps(where).encode() + b"\n")
            lines.flush()
            data, _ = rail.accept()
            with data:
                started = time.monotonic()
                received = _receive(data)
                seconds = time.monotonic() - started
            if received != int(lines.readline() or -1):
                raise ConnectionError("the client went away before all bytes had come")
            lines.write(b"done\n")
            lines.flush()
    return received // options.size, seconds


def _receive(data: socket.socket) -> int:
    """Receive everything until the client has sent its last message."""
    buffer, received = bytearray(CHUNK), 0
    while got := data.recv_into(buffer, CHUNK):
        received += got
    return received


def _meet(host: str, port: int) -> socket.socket | None:
    try:
        return socket.create_connection((host, port), timeout=5)
    except OSError:
        return None


def _send(hca: Hca, control: socket.socket, options: argparse.Namespace) -> tuple[int, float]:
    """Send messages over the rail for the requested time or number, and wait until the server has received them all.

    Return their number and the seconds that it took.
    """
    control.settimeout(None)
    with control, control.makefile("rwb") as lines:
        where = json.loads(lines.readline())
        message, sent = bytes(options.size), 0
        slow = where["guid"] == hca.guid and slows_adapter(hca)  # to itself: only while other loads run
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as data:
            data.bind((ipv4_address(hca.interface), 0))
            data.connect((where["address"], where["port"]))
            began = flows.begin(hca.guid, where["guid"])
            started = time.monotonic()
            while _goes_on(options, sent, time.monotonic() - started):
                data.sendall(message)
                sent += 1
                if slow:
                    time.sleep(STALL_S)
                elif options.duration and where["guid"] != hca.guid:
                    time.sleep(max(0.0, options.size * sent / TIMED_BYTES_S - (time.monotonic() - started)))
            flows.end(hca.guid, where["guid"], began)
            data.shutdown(socket.SHUT_WR)
            lines.write(f"{options.size * sent}\n".encode())
            lines.flush()
            if lines.readline() != b"done\n":
                raise ConnectionError("the server went away before all bytes had come")
            return sent, time.monotonic() - started


def _goes_on(options: argparse.Namespace, sent: int, seconds: float) -> bool:
    return seconds < options.duration if options.duration else sent < int(options.iters)


def _report(hca: Hca, options: argparse.Namespace, iters: int, seconds: float) -> None:
    """With a duration perftest shows no peak."""
    unit, scale = ("Gb/sec", 8 / 1e9) if options.report_gbits else ("MB/sec", 1 / 2**20)
    rate = options.size * iters / seconds * scale
    peak = 0.0 if options.duration else rate
    sys.stdout.write(
        f"{RULE}\n                    RDMA_Write BW Test\n"
        f" Dual-port       : OFF\t\tDevice         : {hca.name}\n"
        " Number of qps   : 1\t\tTransport type : IB\n"
        " Connection type : RC\t\tUsing SRQ      : OFF\n"
        " Mtu             : 4096[B]\n Link type       : IB\n Data ex. method : Ethernet\n"
        f"{RULE}\n"
        f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"
        f" {options.size:<11}{iters:<17}{peak:<19.2f}{rate:<18.2f}{iters / seconds / 1e6:.6f}\n"
        f"{RULE}\n"
    )
