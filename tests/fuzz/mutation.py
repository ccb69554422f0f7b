"""Turns a text into a hostile one: as text, and as JSON where it is JSON."""

from __future__ import annotations

import json
from random import Random
from typing import Any

HOSTILE = (
    *(
        "",
        "\x00",
        "\x1b[2J",
        "\ud800",
        "\u202e",
        "\ufeff",
        "\r\n",
        "\n" * 2000,
        " " * 5000,
        "٣",
        "NaN",
        "-inf",
        "1e999",
    ),
    *(
        "9" * 5000,
        "-1",
        "0x",
        "0" * 40,
        "[" * 3000,
        "{" * 3000,
        "<" * 500,
        "(" * 500,
        "&a [*a,*a]",
        "!!python/object",
        "null",
    ),
    *(
        "18446744073709551616",
        "1.7976931348623157e309",
        "2026-02-30T25:61:61Z",
        "0000-00-00",
        "fe80::1%eth0",
        "../../etc",
        "%s",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        2**64,
        10**400,
        1e308,
        float("inf"),
        float("nan"),
        "",
        "\ud800",
        "x" * 5000,
        [],
        {},
        [None],
        [[]],
    ),
    *({"@odata.id": "/redfish/v1"}, {"@odata.id": 7}, {"": ""}, [{}, "x", 7], "2026-02-30T25:61:61Z"),
)


def mutated(text: str, others: list[str], random: Random) -> str:
    """Return a variant of a text."""
    if random.random() < 0.6:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            for _ in range(random.randint(1, 3)):
                value = _in_json(value, random)
            return json.dumps(value)
    for _ in range(random.randint(1, 4)):
        text = _in_text(text, others, random)
    return text


def _in_text(text: str, others: list[str], random: Random) -> str:
    start, end = sorted(random.randint(0, len(text)) for _ in range(2))
    other, hostile = random.choice(others), random.choice(HOSTILE)
    lines = text.splitlines(keepends=True)
    letter = chr(random.choice((random.randint(0, 127), random.randint(0, 0xFFFF))))
    return random.choice(
        (
            text[:start] + text[end:],
            text[:end],
            text[:start] + hostile + text[start:],
            text[:start] + hostile + text[end:],
            text[:end] + text[start:],
            text[:start] + letter + text[start + 1 :],
            text[:start] + other[random.randint(0, len(other)) :],
            "".join(random.sample(lines, len(lines))),
        )
    )


def _in_json(value: Any, random: Random) -> Any:
    """Return a value in which one part, at any depth, is another one, gone or doubled."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.1:
        return random.choice(VALUES)
    if isinstance(value, list):
        at = random.randrange(len(value))
        new = [_in_json(value[at], random)] if random.random() < 0.7 else random.choice(([], [value[at]] * 3))
        return value[:at] + new + value[at + 1 :]
    key = random.choice(list(value))
    rest = {name: item for name, item in value.items() if name != key}
    return {**rest, key: _in_json(value[key], random)} if random.random() < 0.85 else rest
