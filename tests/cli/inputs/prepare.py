"""A case of wrong input: how a right site is made wrong, which command is run, and the expected message."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from clusterctl.edges.resources import resource
from clusterctl_burnin.package_data import text_of

CASES = Path(__file__).parent / "cases"
EXPECTED = {"where", "message", "remedy", "argv", "bare", "unprivileged", "many"}


@dataclass(frozen=True, slots=True)
class Case:
    """`where` may hold `{site}`, and `<text>` for the number of the first line that has it. `bare`: without --site;
    `many`: several lines are printed, one for each field; `unprivileged`: run without root's right to read everything.
    """

    name: str
    where: str
    message: str
    remedy: str = ""
    argv: tuple[str, ...] = ("plan",)
    bare: bool = False
    many: bool = False
    unprivileged: bool = False
    steps: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, site: Path) -> None:
        for name, what in self.steps.items():
            STEPS[name](site, what)

    def command(self, site: Path) -> list[str]:
        words = [word.replace("{site}", str(site)) for word in self.argv]
        return words if self.bare or "--site" in words else [*words, "--site", str(site)]

    def place(self, site: Path) -> str:
        """Return `where` as the message must have it: with the site's path and the line's number."""
        if "{site}" in self.where:
            return self.where.replace("{site}", str(site))
        file, _, rest = self.where.partition(":")
        if not (site / file).exists() and not (site / file).is_symlink() and not _was_there(file):
            return self.where
        if rest.startswith("<"):
            text, _, tail = rest[1:].rpartition(">")
            lines = (site / file).read_text(errors="replace").split("\n")
            line = next(number for number, content in enumerate(lines, start=1) if text in content)
            rest = f"{line}{tail}"
        return f"{site / file}:{rest}" if rest else str(site / file)


def cases() -> list[Case]:
    """All of them, by file and in order."""
    return [
        Case(
            steps={key: value for key, value in item.items() if key not in {*EXPECTED, "name"}},
            **{key: value for key, value in item.items() if key in {*EXPECTED, "name"} - {"argv"}},
            **({"argv": tuple(item["argv"])} if "argv" in item else {}),
        )
        for file in sorted(CASES.glob("*.yml"))
        for item in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]


def _was_there(file: str) -> bool:
    return "." in file and not file.startswith("-") and " " not in file


def _edit(site: Path, changes: Mapping[str, Mapping[str, str]]) -> None:
    for name, pairs in changes.items():
        text = (site / name).read_text()
        for old, new in pairs.items():
            assert old in text, f"{old!r} does not stand in {name}"
            text = text.replace(old, new)
        (site / name).write_text(text)


def _append(site: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    for name, tail in changes.items():
        body = bytes.fromhex(tail["hex"]) if "hex" in tail else tail["text"].encode() * tail.get("times", 1)
        with (site / name).open("ab") as stream:
            stream.write(tail.get("after", "").encode() + body)


def _write(site: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)


def _bytes(site: Path, files: Mapping[str, str]) -> None:
    for name, digits in files.items():
        (site / name).write_bytes(bytes.fromhex(digits))


def _remove(site: Path, names: list[str]) -> None:
    for name in names:
        (site / name).unlink()


def _sparse(site: Path, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        os.truncate(site / name, size)


def _sku(site: Path, pairs: Mapping[str, str]) -> None:
    """The shipped SKU as the site's own, `ours`, made wrong."""
    text = (resource("skus") / "dell-xe9680-h100.yml").read_text().replace("name: dell-xe9680-h100", "name: ours")
    (site / "skus" / "ours.yml").write_text(text)
    _edit(site, {"skus/ours.yml": pairs, "site.yml": {"skus: [dell-xe9680-h100]": "skus: [ours]"}})


def _baseline(site: Path, text: str) -> None:
    """The site's own SKU `ours`, with this baseline."""
    _sku(site, {"limits: h100-sxm-ndr400": "limits: h100-sxm-ndr400\nbaseline: ours"})
    _write(site, {"baselines/ours.yml": text})


def _limits(site: Path, pairs: Mapping[str, str]) -> None:
    """The shipped limits as the site's own, made wrong below `gpu_temperature_max`, which stands first."""
    data = yaml.safe_load(text_of("limits/h100-sxm-ndr400.yml"))
    data["limits"] = {"gpu_temperature_max": data["limits"].pop("gpu_temperature_max"), **data["limits"]}
    name = "limits/h100-sxm-ndr400.yml"
    (site / name).write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    text = (site / name).read_text()
    for old, new in pairs.items():
        assert old in text, f"{old!r} does not stand in the limits"
        text = text.replace(old, new, 1)
    (site / name).write_text(text)


def _limits_value(site: Path, value: str) -> None:
    known = yaml.safe_load(text_of("limits/h100-sxm-ndr400.yml"))["limits"]["gpu_temperature_max"]["value"]
    _limits(site, {f"value: {known}": f"value: {value}"})


def _journal(site: Path, statement: str) -> None:
    with sqlite3.connect(site / "state" / "journal.db") as connection:
        connection.execute(statement)
    connection.close()


def _fifo(site: Path, names: list[str]) -> None:
    for name in names:
        os.mkfifo(site / name)


def _folder(site: Path, names: list[str]) -> None:
    for name in names:
        (site / name).mkdir()


def _link(site: Path, links: Mapping[str, str]) -> None:
    for name, to in links.items():
        (site / name).symlink_to(to)


def _mode(site: Path, modes: Mapping[str, str]) -> None:
    for name, mode in modes.items():
        (site / name).chmod(int(mode, 8))


def _owner(site: Path, owners: Mapping[str, int]) -> None:
    for name, uid in owners.items():
        os.chown(site / name, uid, -1, follow_symlinks=False)


STEPS: Mapping[str, Callable[[Path, Any], None]] = {
    "append": _append,
    "baseline": _baseline,
    "bytes": _bytes,
    "edit": _edit,
    "fifo": _fifo,
    "folder": _folder,
    "journal": _journal,
    "limits": _limits,
    "limits_value": _limits_value,
    "link": _link,
    "mode": _mode,
    "owner": _owner,
    "remove": _remove,
    "sku": _sku,
    "sparse": _sparse,
    "write": _write,
}
"""Word of a case → what it does to the site; they are done in the order in which the case has them."""
