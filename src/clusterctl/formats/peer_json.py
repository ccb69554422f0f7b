"""JSON of a peer → values that the rest of the program can hold: bounded in size, depth and digits, without surrogates.

Python's own reader takes NaN, numbers of thousands of digits, halves of surrogate pairs and lists that are a thousand
levels deep; each of them fails later, far from the peer that sent it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import has_unseen, visible

MAX_DIGITS = 40
"""Digits of a whole number: a counter of 128 bits has 39."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of one document: bytes, values (about 100 bytes of memory each), levels, characters of one text."""

    size: int = 16 << 20
    values: int = 500_000
    depth: int = 64
    text: int = 4 << 20


DEFAULT = JsonLimits()


class _NumberError(ValueError):
    """A number that no counter holds."""


def read_json(content: bytes | str, limits: JsonLimits = DEFAULT, *, where: str = "") -> Any:
    """Return the document's values; characters that a terminal acts on are visible in its texts, line ends stay.

    NaN, Infinity and numbers beyond floating point become None: not measured. Raises `ParseError` for what is no JSON,
    or is beyond the limits. Takes linear time.
    """
    if len(content) > limits.size:
        raise ParseError(f"is larger than {limits.size >> 10} KiB", where=where)
    text = content if isinstance(content, str) else _decoded(content)
    if text.count(",") + text.count("[") + text.count("{") > limits.values:
        raise ParseError(f"has more than {limits.values} values", where=where)
    try:
        found = json.loads(text, parse_int=_whole, parse_constant=lambda _name: None)
        return _clean(found, limits, limits.depth)
    except _NumberError as error:
        raise ParseError(str(error), where=where) from None
    except json.JSONDecodeError as error:
        raise ParseError(f"is no JSON: {error.msg}", where=f"{where}:{error.lineno}" if where else "") from None
    except RecursionError:
        _too_deep(limits, where)
    except ValueError as error:
        raise ParseError(f"is no JSON ({type(error).__name__})", where=where) from None
    except ParseError as error:
        raise ParseError(error.message, where=where) from None


def _decoded(content: bytes) -> str:
    """Return the text. Bytes that are no UTF-8 spoil the text that they stand in, not the document."""
    return content.decode(json.detect_encoding(content), "replace")


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _NumberError(f"has a number of {len(digits)} digits")
    return int(digits)


def _clean_text(text: str, limits: JsonLimits) -> str:
    if len(text) > limits.text:
        raise ParseError(f"has a text of more than {limits.text >> 10} KiB")
    return visible(text) if has_unseen(text) else text


def _clean(value: Any, limits: JsonLimits, depth: int) -> Any:
    if isinstance(value, str):
        return _clean_text(value, limits)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | list):
        if depth <= 0:
            _too_deep(limits, "")
        if isinstance(value, list):
            return [_clean(item, limits, depth - 1) for item in value]
        return {_clean(name, limits, 0): _clean(item, limits, depth - 1) for name, item in value.items()}
    return value


def _too_deep(limits: JsonLimits, where: str) -> NoReturn:
    raise ParseError(f"is nested more than {limits.depth} levels deep", where=where)
