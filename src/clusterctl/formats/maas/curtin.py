"""curtin's installation log → the line with the cause of the failure.

curtin ends a failed log with `curtin: Installation failed with exception: …` and the failed command, with its output
repeated, indented. The command that failed first is the innermost one (curtin/commands/install.py and
curtin/util.py of curtin).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
_WRAPPERS = frozenset({"unshare", "--fork", "--pid", "--mount-proc", "--", "sh", "-c", "bash", "env"})


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
        argv = self.argv[self.argv.index("chroot") + 2 :] if "chroot" in self.argv else self.argv
        return next((word for word in argv if word not in _WRAPPERS), "")


def failing_line(log: str) -> str:
    """Return the line of the log with the cause of the failure, as plain text; empty where none has it."""
    lines = [line.strip() for line in log.splitlines()]
    failed = _failed_commands(lines)
    inner = [ran for ran in failed if ran.name and ran.name != "curtin"]
    if inner:
        name, cause = inner[-1].name, _cause(lines, inner[-1])
        return plain(f"{name}: {cause}" if cause else f"{name} ended with exit code {inner[-1].exit_code}", MAX_LINE)
    causes = (_cause(lines, ran) for ran in reversed(failed))
    return plain(next(filter(None, causes), "") or _last_error(lines), MAX_LINE)


def _cause(lines: Sequence[str], ran: _Ran) -> str:
    """Return the line that names the error of a failed command, in its outputs, else before it; empty where none is.

    apt's own verdict is `E: …`; its lines about single downloads (`Err:5 …`) come before.
    """
    if ran.name.startswith("apt"):
        outputs = (*ran.stderr, *ran.stdout, *_before(lines, ran.at))
        if found := next((line for line in outputs if line.startswith("E: ")), ""):
            return found
    return _first_error(ran.stderr) or _last_error(ran.stdout) or _last_error(_before(lines, ran.at))


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


def _names_error(line: str) -> bool:
    return bool(line) and not _NOISE.match(line) and bool(_ERROR.search(line))


def _first_error(lines: Sequence[str]) -> str:
    """Return the first line that names an error; else the only line, if there is one."""
    return next((line for line in lines if _names_error(line)), lines[0] if len(lines) == 1 else "")


def _last_error(lines: Sequence[str]) -> str:
    """Return the first of the last lines in a row that name an error; else the only line, if there is one."""
    last = next((index for index in reversed(range(len(lines))) if _names_error(lines[index])), None)
    if last is None:
        return lines[0] if len(lines) == 1 and not _NOISE.match(lines[0]) else ""
    while last > 0 and _names_error(lines[last - 1]):
        last -= 1
    return lines[last]
