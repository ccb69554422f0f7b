"""What crosses the network of this machine, seen below every program: packet(7), with the kernel dropping other labs'."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from typing import Self

ETH_P_ALL, ETH_P_IP = 0x0003, 0x0800  # a tap for one protocol would see only what arrives
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33
BUFFER_BYTES = 64 << 20
LONGEST = 1 << 16
TCP = 6
LOAD, LOAD_HALF, AND, IS, ACCEPT = 0x20, 0x28, 0x54, 0x15, 0x06  # bpf(4): ld [k]; ldh [k]; and #k; jeq #k; ret #k
PROTOCOL = 0xFFFFF000  # SKF_AD_OFF + SKF_AD_PROTOCOL of linux/filter.h: the packet's EtherType

Flow = tuple[str, str]


class Capture:
    """The TCP streams that touch `network`, on all interfaces of this machine, while it is entered."""

    def __init__(self, network: IPv4Network) -> None:
        self._segments: dict[Flow, dict[int, bytes]] = defaultdict(dict)
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, "capture")
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        _filter(self._socket, network)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.settimeout(0.2)
        self.packets = self.dropped = 0

    def __enter__(self) -> Self:
        self._listening = self._pool.submit(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        self._listening.result()
        self.packets, self.dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._socket.close()

    @property
    def streams(self) -> dict[Flow, bytes]:
        """Return what each sender (`address:port`) sent to each receiver, in the order of its sequence numbers."""
        return {
            flow: b"".join(data for _, data in sorted(segments.items())) for flow, segments in self._segments.items()
        }

    def to_port(self, port: int) -> list[bytes]:
        return [message for (_, receiver), message in self.streams.items() if receiver.endswith(f":{port}")]

    def _listen(self) -> None:
        while True:
            try:
                self._note(self._socket.recv(LONGEST))
            except TimeoutError:
                if self._stop.is_set():
                    return

    def _note(self, packet: bytes) -> None:
        """A packet crosses several interfaces, and may be sent again: each segment is kept once, at its longest."""
        header, length = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
        if packet[9] != TCP:
            return
        sender, receiver, number = struct.unpack_from("!HHI", packet, header)
        data = packet[header + (packet[header + 12] >> 4) * 4 : length or len(packet)]
        flow = (f"{socket.inet_ntoa(packet[12:16])}:{sender}", f"{socket.inet_ntoa(packet[16:20])}:{receiver}")
        segments = self._segments[flow]
        if len(data) > len(segments.get(number, b"")):
            segments[number] = data


def _filter(listener: socket.socket, network: IPv4Network) -> None:
    """Source or destination in `network`, or the kernel drops it before we are woken."""
    mask, wanted = int(network.netmask), int(network.network_address)
    program = [
        (LOAD_HALF, 0, 0, PROTOCOL),
        (IS, 0, 7, ETH_P_IP),
        (LOAD, 0, 0, 12),
        (AND, 0, 0, mask),
        (IS, 3, 0, wanted),
        (LOAD, 0, 0, 16),
        (AND, 0, 0, mask),
        (IS, 0, 1, wanted),
        (ACCEPT, 0, 0, LONGEST),
        (ACCEPT, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))
