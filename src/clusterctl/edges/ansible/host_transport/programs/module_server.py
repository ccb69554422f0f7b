"""Runs on a host: runs Ansible's modules in forks of one process that has loaded what all of them need.

Without it, each module starts a Python and compiles some 20 files of Ansible: most of a play's time on the host.
`bin/ansible-playbook` starts this server first, and the connection plug-in (`local_connection.py`) sends modules to
it. Where the server does not run, a Python is started for each module.
How modules are packed: https://docs.ansible.com/ansible/latest/dev_guide/developing_program_flow_modules.html#ansiballz
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import selectors
import signal
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

NEEDED = (
    "ansible.module_utils.basic",
    "ansible.module_utils._internal._ansiballz._loader",
    "ansible.module_utils.facts.ansible_collector",
    "ansible.module_utils.urls",
    "base64",
    "runpy",
    "shutil",
    "tempfile",
    "zipfile",
)
MESSAGE_BYTES = 1 << 18
STREAMS = ("stdin", "stdout", "stderr")


def start(home: Path, address: str) -> int:
    """Serve modules at `address` (a socket's path) until every process with the returned descriptor has ended.

    `home` is the bundle. Ansible must not be loaded yet: a fork of this process becomes the server.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    ended, alive = os.pipe()
    if os.fork() == 0:
        os.close(alive)
        _serve(home, listener, ended)
    os.close(ended)
    listener.close()
    return alive


def _serve(home: Path, listener: socket.socket, ended: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        load(home)
        Server(listener, ended).run()
    except Exception:  # noqa: BLE001 — another Ansible may need other modules
        traceback.print_exc()
    finally:
        os._exit(1)  # the callers then start Python themselves


def load(home: Path) -> None:
    """Import what modules need, without Ansible's controller side, which would change their behaviour.

    `ansible` holds only `modules` and `module_utils`, as in the archive of each module.
    """
    parts = [_part(home / "lib" / "ansible", name) for name in ("ansible.module_utils", "ansible.modules")]
    package = types.ModuleType("ansible")
    package.__path__ = []
    package.__file__ = str(home / "lib" / "ansible" / "__init__.py")
    sys.modules["ansible"] = package
    for part in parts:
        sys.modules[part.name] = module = importlib.util.module_from_spec(part)
        setattr(package, part.name.rpartition(".")[2], module)
    for name in NEEDED:
        importlib.import_module(name)


def _part(folder: Path, name: str) -> importlib.machinery.ModuleSpec:
    """Return the spec of a package with an empty `__init__`."""
    spec = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
    if spec is None:
        raise ImportError(f"{name} is not in {folder}")
    return spec


class Server:
    """Forks one process for each module, and sends its exit code to the caller."""

    def __init__(self, listener: socket.socket, ended: int) -> None:
        self._listener = listener
        self._ended = ended
        self._waiting = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve until no possible caller is left."""
        self._waiting.register(self._listener, selectors.EVENT_READ)
        self._waiting.register(self._ended, selectors.EVENT_READ)
        while True:
            for key, _ in self._waiting.select():
                if key.fd == self._ended:
                    return
                if key.fd == self._listener.fileno():
                    self._begin()
                else:
                    self._finish(key.fd, *key.data)

    def _begin(self) -> None:
        caller, _ = self._listener.accept()
        message, streams, _, _ = socket.recv_fds(caller, MESSAGE_BYTES, len(STREAMS))
        if len(streams) == len(STREAMS):
            pid = os.fork()
            if pid == 0:
                run_module(json.loads(message), streams)
            self._waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, caller))
        else:
            caller.close()
        for stream in streams:
            os.close(stream)

    def _finish(self, watch: int, pid: int, caller: socket.socket) -> None:
        self._waiting.unregister(watch)
        os.close(watch)
        _, status = os.waitpid(pid, 0)
        with caller, contextlib.suppress(OSError):  # the caller may have been killed
            caller.send(b"%d" % os.waitstatus_to_exitcode(status))


def run_module(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run the module of stdin in this fork, as a Python that the caller had started."""
    status = 1
    try:
        take_over(request, streams)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(end.code)
    except BaseException:  # noqa: BLE001 — a Python started for it would print the same
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def take_over(request: dict[str, Any], streams: list[int]) -> None:
    """Set the caller's environment, folder, umask and streams."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), max(streams) + 64)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.umask(request["umask"])
    os.chdir(request["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in enumerate(STREAMS):
        raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
        buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape"))
    sys.argv = [""]
