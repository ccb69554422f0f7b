"""The connection plug-in of a play on the host itself. It runs tasks in the same environment as over SSH.

Ansible's own `local` uses the playbook's folder and the controller's folder for files; over SSH both belong to the
login. Modules are sent to `module_server.py`. Ansible loads this on the host, from the bundle; the controller never
imports it.
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
    name: local_connection
    short_description: run tasks on this host
    description: As local, with the folders that tasks have over SSH.
    author: clusterctl
    options:
        become_success_timeout:
            type: int
            default: 10
            description: Seconds in which become must succeed.
        become_strip_preamble:
            type: bool
            default: true
            description: Whether the messages of become are removed from the output.
    extends_documentation_fragment:
        - connection_pipelining
"""

PLAIN_MODULE = "/bin/sh -c '/usr/bin/python3 && sleep 0'"
"""The command of a plain module as root; every other command is a process of its own."""
SERVER = "CLUSTERCTL_MODULES"


class Connection(Local):  # type: ignore[misc]  # ansible-core has no exported annotations
    """`local` under another name, without Ansible's special cases for `local`."""

    transport = "local_connection"
    _remote_is_local = False

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a module in the module server if it runs; everything else as `local` does."""
        if in_data and cmd == PLAIN_MODULE:
            with (
                suppress(ConnectionError, FileNotFoundError, KeyError),
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
            ):
                server.connect(os.environ[SERVER])
                return run_in_server(server, in_data)
        answer: tuple[int, bytes, bytes] = super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return answer


def run_in_server(server: socket.socket, module: bytes) -> tuple[int, bytes, bytes]:
    """Return exit code, stdout and stderr of the module."""
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    try:
        os.pwrite(streams[0], module, 0)
        umask = os.umask(0o077)
        os.umask(umask)
        environment = {name: value for name, value in os.environ.items() if name != SERVER}
        request = {"environment": environment, "folder": str(Path.cwd()), "umask": umask}
        socket.send_fds(server, [json.dumps(request).encode()], streams)
        reply = server.recv(64)
        if not reply:
            return 1, b"", b"the module server ended"
        return int(reply), _content(streams[1]), _content(streams[2])
    finally:
        for stream in streams:
            os.close(stream)


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)
