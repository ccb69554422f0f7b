"""curtin's installation log → the line that says why it failed.

curtin ends a failed log with `curtin: Installation failed with exception: …` and the failed command, whose output it
quotes once more, indented. The command that failed first is the innermost one (curtin/commands/install.py and
curtin/util.py of curtin).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterctl.formats.maas.machines import plain

MAX_LINE = 300
_COMMAND = re.compile(r"Command: \[(?P<argv>.*)\]?$")
_FIELD = re.compile(r"(?P<name>Exit code|Reason|Stdout|Stderr): ?(?P<value>.*)$")
_ERROR = re.compile(
    r"\b(?:error|err|fatal|failed|failure|cannot|could not|couldn't|unable|no such|not found|denied|refused|timed out"
    r"|did not find|no space|read-only|input/output|busy|not installed|requires|corrupt\w*|invalid|wrong|missing)\b"
    r"|\w(?:Error|Exception): |^E: ",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^(?:Unexpected error while running command|Traceback |File \"|start: |finish: |TIMED |Running command "
    r"|curtin: |raise |return |[\w.]*ProcessExecutionError|WARNING: |Warning: |W: |\+ )"
)
_WRAPPERS = frozenset({"unshare", "--fork", "--pid", "--mount-proc", "--", "chroot", "sh", "-c", "bash", "env"})


@dataclass(slots=True)
class _Ran:
    """One failed command of the log: where it begins, its words, its exit code, its two outputs."""

    at: int
    argv: tuple[str, ...]
    exit_code: str = ""
    stdout: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [word for word in self.argv if word not in _WRAPPERS and not word.startswith("/tmp/")]  # noqa: S108
        return words[0] if words else ""


def failing_line(log: str) -> str:
    """Return the line of the log that says why the installation failed, as plain text; empty where none does."""
    lines = [line.strip() for line in log.splitlines()]
    failed = _failed_commands(lines)
    inner = [ran for ran in failed if ran.name and ran.name != "curtin"]
    for ran in reversed(inner):
        cause = _telling(ran.stderr) or _telling(ran.stdout) or _telling(_before(lines, ran.at))
        return plain(f"{ran.name}: {cause}" if cause else f"{ran.name} ended with exit code {ran.exit_code}", MAX_LINE)
    for ran in reversed(failed):
        if cause := _telling(ran.stderr) or _telling(ran.stdout) or _telling(_before(lines, ran.at)):
            return plain(cause, MAX_LINE)
    return plain(_telling(lines), MAX_LINE)


def _failed_commands(lines: Sequence[str]) -> list[_Ran]:
    found: list[_Ran] = []
    for number, line in enumerate(lines):
        if match := _COMMAND.match(line):
            ran = _Ran(number, tuple(re.findall(r"'([^']*)'", match["argv"])))
            _read_fields(lines[number + 1 :], ran)
            found.append(ran)
    return found


def _read_fields(lines: Sequence[str], ran: _Ran) -> None:
    """Read exit code and outputs; each output ends where the next field, or the next failed command, begins."""
    outputs: dict[str, list[str]] = {"Stdout": [], "Stderr": []}
    current = ""
    for whole in lines:
        if _COMMAND.match(whole) or whole.startswith("curtin: Installation failed"):
            break
        line = whole
        if match := _FIELD.match(whole):
            current, line = match["name"], match["value"]
            if current == "Exit code":
                ran.exit_code = line
        if current in outputs and line not in ("", "''", "-"):
            outputs[current].append(line)
        elif current == "Stderr" and not line:
            break
    ran.stdout, ran.stderr = tuple(outputs["Stdout"]), tuple(outputs["Stderr"])


def _before(lines: Sequence[str], at: int) -> Sequence[str]:
    """Return what the log holds right before a failed command: its output, where curtin did not capture it."""
    return lines[max(0, at - 60) : at]


def _telling(lines: Iterable[str]) -> str:
    """Return the first of the last run of lines that name an error; else the last line of an output that is short."""
    kept = [line for line in lines if line and not _NOISE.match(line)]
    errors = [line for line in kept if _ERROR.search(line)]
    if not errors:
        return kept[-1] if len(kept) == 1 else ""
    last = [index for index, line in enumerate(kept) if line == errors[-1]][-1]
    while last > 0 and _ERROR.search(kept[last - 1]):
        last -= 1
    return kept[last]
