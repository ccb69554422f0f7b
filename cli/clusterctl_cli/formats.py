"""Output formats: `-o`, `--json`, and the one writer of documents."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.peer_text import visible_json
from clusterctl.operations.documents import redacted
from clusterctl_cli.text import echo

F = TypeVar("F", bound=Callable[..., Any])

_META = "clusterctl.format"
"""Key of the chosen format in click's context, which a group shares with its commands."""


class Format(enum.Enum):
    """How a result is printed. All but `TABLE` and `WIDE` print one document on stdout."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"

    @property
    def text(self) -> bool:
        """True where the result is printed as text."""
        return self in (Format.TABLE, Format.WIDE)


DOCUMENTS = (Format.TABLE, Format.JSON, Format.YAML)
"""Formats of a result without named items."""


def format_option(*formats: Format) -> Callable[[F], F]:
    """Return `-o` with these formats, all without arguments, and `--json`; the command receives `as_json`, which is
    True where a document is asked for. `print_document` prints it in the chosen format.
    """
    names = [item.value for item in formats or Format]
    listed = f"{', '.join(names[:-1])} or {names[-1]}"

    def decorate(function: F) -> F:
        function = click.option(
            "--json", "as_json", is_flag=True, callback=_document_asked, help="Short form of -o json."
        )(function)
        return click.option(
            "-o",
            "--format",
            "form",
            type=click.Choice(names),
            metavar="FORMAT",
            is_eager=True,
            expose_value=False,
            callback=_remember,
            help=f"Print {listed}.",
        )(function)

    return decorate


def _remember(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[_META] = Format(value)


def _document_asked(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    if value and ctx.meta.setdefault(_META, Format.JSON) is not Format.JSON:
        raise UsageError(
            f"--json and -o {ctx.meta[_META].value} exclude each other", where="--json", remedy="leave out one of them"
        )
    return not asked().text


def asked() -> Format:
    """Return the format that the running command was asked for."""
    context = click.get_current_context(silent=True)
    found = context.meta.get(_META, Format.TABLE) if context is not None else Format.TABLE
    return found if isinstance(found, Format) else Format.TABLE


def asked_on(argv: Sequence[str]) -> Format:
    """Return the format that a command line asks for, also where the rest of it is wrong: errors are printed in it."""
    words = list(argv[: argv.index("--")] if "--" in argv else argv)
    if "--json" in words:
        return Format.JSON
    for word, after in zip(words, [*words, ""][1:], strict=True):
        value = after if word in ("-o", "--format") else word.removeprefix("--format=").removeprefix("-o")
        if value in (Format.JSON.value, Format.YAML.value) and word.startswith("-"):
            return Format(value)
    return Format.TABLE


def print_document(document: Mapping[str, Any]) -> None:
    """Print one document on stdout in the format that was asked for, JSON by default, without secrets.

    A value may be an iterator: the JSON of a fleet is then never held as a whole.
    """
    form = asked()
    if form is Format.NAME:
        for name in _names(document):
            echo(redacted(name))
    elif form is Format.YAML:
        echo(written(document, form), nl=False)
    else:
        for piece in _pieces(document):
            echo(visible_json(redacted(piece)), nl=False)
        echo()


def written(document: Mapping[str, Any], form: Format) -> str:
    """Return a document as YAML or JSON, without secrets."""
    text = visible_json(redacted("".join(_pieces(document))))
    if form is not Format.YAML:
        return text
    import yaml

    hidden = "\\u" in text  # YAML writes such characters as escapes, too, but for a few that it holds for printable
    return str(yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=not hidden, width=120))


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON of a document; of a list or an iterator, one item in each piece."""
    if not document:
        yield "{}"
        return
    before = "{\n  "
    for key, value in document.items():
        yield f"{before}{_json(key)}: "
        before = ",\n  "
        if isinstance(value, list | Iterator):
            yield from _items(value)
        else:
            yield _json(value).replace("\n", "\n  ")
    yield "\n}"


def _items(values: Iterable[Any]) -> Iterator[str]:
    before, after = "[", "[]"
    for value in values:
        yield f"{before}\n    " + _json(value).replace("\n", "\n    ")
        before, after = ",", "\n  ]"
    yield after


def _json(value: object) -> str:
    """Return indented JSON as `json.dumps` writes it, in a fifth of its time.

    Text that is no Unicode (half of a surrogate pair) is escaped.
    """
    from pydantic_core import PydanticSerializationError, to_json  # takes 10 ms, and not every command prints JSON

    try:
        return to_json(value, indent=2, inf_nan_mode="constants").decode()
    except PydanticSerializationError:
        return json.dumps(value, indent=2)


def _names(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the first list of named items."""
    for value in document.values():
        items = list(value) if isinstance(value, Iterator) else value
        if isinstance(items, list) and all(
            isinstance(item, Mapping) and item.keys() & {"name", "node"} for item in items
        ):
            return [str(item.get("name") or item.get("node")) for item in items]
    return []
