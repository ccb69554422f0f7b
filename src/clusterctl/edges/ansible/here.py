"""The connection plug-in of a play by the host itself: processes started here, as over SSH they are started there.

Ansible's own `local` puts tasks into the playbook's folder and their files beside the controller's; over SSH both are
the login's. Modules are handed over to `module_server.py`. Loaded by Ansible on the host, from the bundle; never
imported by the controller.
https://docs.ansible.com/ansible/latest/dev_guide/developing_plugins.html#connection-plugins
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
    name: here
    short_description: run tasks on this host
    description: As local, with the folders that tasks find over SSH.
    author: clusterctl
    options:
        become_success_timeout:
            type: int
            default: 10
            description: Seconds in which become must succeed.
        become_strip_preamble:
            type: bool
            default: true
            description: Whether what become says by itself is taken from the output.
    extends_documentation_fragment:
        - connection_pipelining
"""

PLAIN_MODULE = "/bin/sh -c '/usr/bin/python3 && sleep 0'"
"""A module as root, with nothing before or around it; anything else is a process of its own."""
SERVER = "CLUSTERCTL_MODULES"


class Connection(Local):  # type: ignore[misc]  # ansible-core has no annotations that are told to others
    """`local` by another name, which has none of its exceptions."""

    transport = "here"
    _remote_is_local = False

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """By the server of modules where it is one and somebody serves; else as `local` does."""
        if in_data and cmd == PLAIN_MODULE:
            with (
                suppress(ConnectionError, FileNotFoundError, KeyError),
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
            ):
                server.connect(os.environ[SERVER])
                return handed_over(server, in_data)
        answer: tuple[int, bytes, bytes] = super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return answer


def handed_over(server: socket.socket, module: bytes) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of the module."""
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    try:
        os.pwrite(streams[0], module, 0)
        umask = os.umask(0o077)
        os.umask(umask)
        environment = {name: value for name, value in os.environ.items() if name != SERVER}
        told = {"environment": environment, "folder": str(Path.cwd()), "umask": umask}
        socket.send_fds(server, [json.dumps(told).encode()], streams)
        said = server.recv(64)
        if not said:
            return 1, b"", b"the server of modules ended"
        return int(said), _content(streams[1]), _content(streams[2])
    finally:
        for stream in streams:
            os.close(stream)


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)
