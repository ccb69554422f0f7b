"""docs/reference/commands.md and the README's table of commands, made of what click knows: not written by hand."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import click

from clusterctl_cli.main import cli
from tests.paths import ROOT

PAGE = ROOT / "docs/reference/commands.md"
README = ROOT / "README.md"
_COMMON = 8
"""An option that so many commands have with the same text is explained once."""
_HEAD = """\
# Commands

```console
clusterctl --help
clusterctl COMMAND --help
```

Every command with its arguments and options, in the groups of `clusterctl --help`. A test writes this page from the
command line itself: `CLUSTERCTL_WRITE_PAGES=1 pytest tests/docs/test_command_page.py`.

## Exit codes

| code | meaning |
|---|---|
| 0 | all is fine |
| 1 | some node failed or is held, or something could not be measured |
| 2 | wrong usage or wrong input: the message names file, line and field |
| 3 | the environment is broken: a tool is missing, no database, no network |
| 130 | interrupted; run the same command again to go on; or a question was answered with no: nothing was changed |
"""


def readme() -> str:
    """Return the README with today's table of commands."""
    rows = [f"| {title.lower()} | {', '.join(_short(names))} |" for title, names in _sections(_root())]
    table = "\n".join(["| group | commands |", "|---|---|", *rows])
    return re.sub(r"\| group \| commands \|\n(\|.*\n)+", table + "\n", README.read_text(encoding="utf-8"))


def page() -> str:
    """Return the whole page."""
    root = _root()
    sections = list(_sections(root))
    listed = {name for _, names in sections for name in names}
    entries = {title: [entry for name in names for entry in _entries(root, name, listed)] for title, names in sections}
    counted = Counter(row for members in entries.values() for _, context in members for row in _rows(context))
    common = {row for row, count in counted.items() if count >= _COMMON}
    parts = [
        _HEAD,
        "\n## Common options\n\nMost commands have these; each command names those that it has.\n",
        *_table(sorted(common)),
    ]
    for title, members in entries.items():
        parts.append(f"\n## {title}\n")
        for command, context in members:
            parts += _entry(command, context, common)
    return "".join(parts)


def _root() -> click.Context:
    return click.Context(cli, info_name="clusterctl", help_option_names=["-h", "--help"])


def _short(names: Iterable[str]) -> Iterator[str]:
    """Yield the commands; subcommands follow the first of their command without its name."""
    names, group = tuple(names), ""
    for name in names:
        if any(other.startswith(f"{name} ") for other in names):
            continue
        first, _, rest = name.partition(" ")
        yield f"`{rest}`" if rest and first == group else f"`{name}`"
        group = first if rest else ""


def _sections(root: click.Context) -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of the help text that list commands: the title, and the commands' names."""
    title, names = "", list[str]()
    for line in [*root.get_help().splitlines(), "Options:"]:
        heading = re.fullmatch(r"(\w[\w ]*):", line)
        row = re.match(r"  ([a-z][\w-]*(?: [a-z][\w-]*)?)(?:  |$)", line)
        if heading:
            if names and title != "Options":
                yield title, names
            title, names = heading[1], []
        elif row:
            names.append(row[1])


def _entries(root: click.Context, name: str, listed: set[str]) -> Iterator[tuple[click.Command, click.Context]]:
    """Yield one command, and those of its subcommands that no section lists by themselves."""
    command, context = cli, root
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None, name
        command, context = found, click.Context(found, info_name=word, parent=context)
    yield command, context
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            if f"{name} {word}" not in listed:
                yield from _entries(root, f"{name} {word}", listed)


def _entry(command: click.Command, context: click.Context, common: set[tuple[str, str]]) -> Iterator[str]:
    yield f"\n### {context.command_path}\n\n"
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield f"\n{_prose(paragraph)}\n"
    rows = _rows(context)
    yield from _table(row for row in rows if row not in common)
    shared = [f"`{option}`" for option, text in rows if (option, text) in common]
    if shared:
        yield f"\nCommon options: {', '.join(shared)}.\n"


def _rows(context: click.Context) -> list[tuple[str, str]]:
    records = (option.get_help_record(context) for option in context.command.params)
    return [record for record in records if record is not None and record[1]]


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [f"| `{_cell(option)}` | {_prose(_cell(text))} |\n" for option, text in rows]
    if lines:
        yield "\n| option | meaning |\n|---|---|\n"
        yield from lines


def _prose(text: str) -> str:
    text = text.removeprefix("\b").strip()
    return "`".join(
        part if index % 2 else re.sub(r"([*_<\[\]])", r"\\\1", part) for index, part in enumerate(text.split("`"))
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
