"""The path of ssh's control sockets fits into a socket's name, from the site or at least from the temporary folder."""

from __future__ import annotations

import os
from pathlib import Path

from clusterctl.edges.ansible.folders import places
from clusterctl.edges.ansible.workspace import CONTROL_NAME, SOCKET_PATH_MAX
from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "control_path"


def check(site: Site) -> Diagnosis:
    return judge(places(site.folder / "state" / "ansible"))


def judge(folders: tuple[Path, ...]) -> Diagnosis:
    """`folders` in the order in which a run tries them."""
    room = SOCKET_PATH_MAX - CONTROL_NAME
    fitting = next((folder for folder in folders if len(os.fsencode(folder)) <= room), None)
    if fitting is None:
        message = f"{folders[0]} is longer than {room} bytes, and so is {folders[-1]}"
        return broken(NAME, message, "set TMPDIR to a short path, such as /tmp")
    return ok(NAME, f"{fitting} has {len(os.fsencode(fitting))} of at most {room} bytes")
