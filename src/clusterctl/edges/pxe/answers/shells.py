"""The shell that runs inside the installers: what is particular to one attempt, then the files of `shell/`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from importlib.resources import files


def shell(settings: Mapping[str, str], functions: Iterable[str], *names: str) -> str:
    """Return a POSIX shell program: `settings` as variables, `functions`, then the named files of `shell/`."""
    variables = [f"{name}={shlex.quote(value)}\n" for name, value in settings.items()]
    folder = files(__package__) / "shell"
    texts = [(folder / f"{name}.sh").read_text(encoding="utf-8") for name in names]
    return "".join([*variables, *functions, *texts])


def function(name: str, *lines: str) -> str:
    """Return a shell function of the given lines; each may hold several, here-documents too."""
    return f"{name}() {{\n" + "".join(f"{line.rstrip()}\n" for line in lines or (":",)) + "}\n"


def put(path: str, text: str, mode: str = "0644") -> str:
    """Return the line that writes a file of the new system (`put` of `shell/accept.sh`): `text` comes out as it is.

    netplan's own files are for root only, or netplan warns at each boot.
    """
    mode = "0600" if path.startswith("/etc/netplan/") else mode
    return f"put {mode} {shlex.quote(path)} {here(text)}"


def here(text: str) -> str:
    """Return `text` as a here-document, in which the shell changes nothing."""
    end = "END"
    while re.search(rf"^{end}$", text, re.MULTILINE):
        end += "_"
    body = text if text.endswith("\n") else text + "\n"
    return f"<<'{end}'\n{body}{end}"
