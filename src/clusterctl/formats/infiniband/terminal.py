"""Terminal captures of InfiniBand tools → the tool's own lines: prompts, escape sequences and warnings are taken out.

Line numbers stay: a removed line becomes an empty one. Error output about missing or duplicate devices stays in the
text, so that its reader refuses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
_BACKSPACE = re.compile(r"[^\x08]\x08")
_CONTROL = re.compile(r"[\x00\x07\x08\x0e\x0f\x7f\ufeff]")
_PROMPT = re.compile(
    r"(?:\(\S+\)\s)?"  # a Python environment
    r"(?:\[[^\]]*[@\s][^\]]*\]|[\w.-]+@[\w.-]+[^#$%>]*|[\w.-]+(?::[\w~/.-]*)?\s?(?:\[[^\]]*\]\s?)?(?:\([\w\s-]+\)\s?)?|PS\s\S+)?"
    r"[#$%>\u276f](?:\s.*)?$"
)
_NOISE = re.compile(
    r"=~=~|Script (?:started|done)|\[sudo\]|(?:Connection|Shared connection) to \S+ closed|(?:logout|exit|yes)$|"
    r"(?:Last login|Warning: Permanently added|Linux |Welcome to)|--\s?More\s?--|lines \d+-\d+|\(END\)|\++ \S*ib\w+|"
    r"(?:real|user|sys)\s+\d+m|^\S+'s password:|time: "
)
_WARNING = re.compile(r"ibwarn\b|perl: warning|\S+\.c:\d+;|-W-|\S*: warning:|.*\bmad_rpc\b", re.IGNORECASE)
_REFUSED = re.compile(r"duplicate|ibpanic|iberror|can't open", re.IGNORECASE)
_ATTRIBUTES = ("vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=")
_COMMENTS = ("# Topology file", "# Initiated from")
_HEADER = re.compile(
    r'(?:Switch|Ca|Rt)\s*\d+\s*"|(?:Switch|CA|Router):\s.*:$|(?:SW|CA|RT)\s+\d+\s+\d+\s+0x|(?:START|END)_[A-Z]'
)


@dataclass(frozen=True, slots=True)
class Capture:
    """The tool's lines, and the warnings that it printed between them: it may not have reached every device."""

    text: str
    warnings: tuple[str, ...]


def tool_output(text: str) -> Capture:
    """Return the tool's part of a capture; all of the text where no line of a tool is recognised."""
    text = _without_controls(text)
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if _is_payload(line.strip())), None)
    if begin is None:
        return Capture(text, ())
    kept: list[str] = []
    warnings: list[str] = []
    for number, line in enumerate(lines):
        bare = line.strip()
        if _is_kept(bare):
            kept.append(line)
        elif _WARNING.match(bare):
            kept.append("")
            warnings.append(bare[:200])
        else:
            kept.append("" if number < begin or _is_noise(bare) else line)
    return Capture("\n".join(kept), tuple(warnings))


def _without_controls(text: str) -> str:
    if any(sign in text for sign in "\x1b\x08\x00"):
        return _CONTROL.sub("", _without_backspaces(_ESCAPE.sub("", text)))
    return text


def _is_kept(line: str) -> bool:
    """Return whether a line is the tool's, or an error for which its reader must refuse the text."""
    return not line or _is_payload(line) or _REFUSED.search(line) is not None


def _is_noise(line: str) -> bool:
    return _NOISE.match(line) is not None or _PROMPT.match(line) is not None


def _is_payload(line: str) -> bool:
    if line.startswith("["):
        return line[1:2].isdigit()
    return line.startswith((*_ATTRIBUTES, *_COMMENTS)) or "==(" in line or _HEADER.match(line) is not None


def _without_backspaces(text: str) -> str:
    while "\x08" in text and (fewer := _BACKSPACE.sub("", text)) != text:
        text = fewer
    return text
