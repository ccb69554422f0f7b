"""Runs on a node, as the built-in probe `resolve-names`: whether each of its name servers answers, and what.

Standard library only, Python 3.9. Each server is asked by itself, by DNS over UDP (RFC 1035), since a resolver hides
one that is dead behind the next, and each lookup's first seconds with it. Where the site lists no names, they are
asked for the host's own. Behind systemd-resolved's stub those are asked that it asks.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

FILES = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
STUBS = ("127.0.0.53", "127.0.0.54")
PATIENCE = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))  # how many times as long a host is given
PORT, TIMEOUT, TRIES = 53, 2.0 * PATIENCE, 2
ADDRESS_TYPES = (1, 28)  # A, AAAA
CODES = {0: "none", 1: "formerr", 2: "servfail", 3: "nxdomain", 4: "notimp", 5: "refused"}
AT_ONCE = 16


def words(path: str, keyword: str) -> list[str]:
    """Return what follows the keyword in a resolv.conf(5); of several `search` lines the last counts."""
    try:
        lines = [line.split() for line in Path(path).read_text(errors="replace").splitlines()]
    except OSError:
        return []
    found = [line[1:] for line in lines if line[:1] == [keyword]]
    if keyword == "nameserver":
        return [line[0] for line in found if line]
    return found[-1] if found else []


def configured(files: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Name servers and search list; a server that stands twice is asked once."""
    own = words(files[0], "nameserver")
    asked = words(files[1], "nameserver") if set(own) & set(STUBS) else own
    return list(dict.fromkeys(asked or own)), words(files[0], "search")


def query(name: str, kind: int) -> bytes:
    """Return a question with recursion desired (RFC 1035, section 4.1)."""
    labels = name.rstrip(".").encode("idna").split(b".")
    asked = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack("!HHHHHH", secrets.randbits(16), 0x0100, 1, 0, 0, 0) + asked + struct.pack("!HH", kind, 1)


def skip_name(message: bytes, at: int) -> int:
    while message[at]:
        if message[at] >= 0xC0:  # a pointer ends the name
            return at + 2
        at += message[at] + 1
    return at + 1


def outcome(message: bytes, kind: int) -> str:
    """Return `address`, or why there is none: `none` where the name exists without one."""
    _, flags, questions, answers = struct.unpack_from("!HHHH", message)
    if flags & 0x000F:
        return CODES.get(flags & 0x000F, f"code {flags & 0x000F}")
    if flags & 0x0200:  # cut off: more than fits a datagram is there
        return "address"
    at = 12
    for _ in range(questions):
        at = skip_name(message, at) + 4
    for _ in range(answers):
        at = skip_name(message, at)
        found, _, _, length = struct.unpack_from("!HHIH", message, at)
        if found == kind:
            return "address"
        at += 10 + length
    return "none"


def ask(server: str, name: str, kind: int) -> str:
    """Return the outcome, `silent`, or the system's error."""
    asked = query(name, kind)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    for _ in range(TRIES):
        with socket.socket(family, socket.SOCK_DGRAM) as own:
            own.settimeout(TIMEOUT)
            try:
                own.connect((server, PORT))
                own.send(asked)
                answer = own.recv(4096)
                while answer[:2] != asked[:2]:
                    answer = own.recv(4096)
                return outcome(answer, kind)
            except socket.timeout:
                continue
            except OSError as error:
                return error.strerror or str(error)
            except (IndexError, struct.error):
                return "not understood"
    return "silent"


def look_up(server: str, name: str, one: Callable[[str, str, int], str] = ask) -> str:
    """Return an address of either family; else the first one's outcome."""
    first = one(server, name, ADDRESS_TYPES[0])
    if first != "none":
        return first
    second = one(server, name, ADDRESS_TYPES[1])
    return second if second == "address" else first


def main(
    requirements: dict[str, Any],
    files: tuple[str, str] = (FILES[0], FILES[1]),
    look: Callable[[str, str], str] = look_up,
) -> None:
    """Print `{"wanted", "servers", "answers": [{server, name, outcome}]}`."""
    servers, search = configured(files)
    wanted, own = requirements.get("names") or [], platform.node()
    names = wanted or [own if "." in own or not search else f"{own}.{search[0]}"]
    pairs = [(server, name) for server in servers for name in names]

    def answer(pair: tuple[str, str]) -> dict[str, str]:
        return {"server": pair[0], "name": pair[1], "outcome": look(*pair)}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(answer, pairs))
    json.dump({"wanted": list(wanted), "servers": servers, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")))
