"""What no two machines share: serial numbers, MAC addresses, GUIDs, UUIDs. Found in the resources of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DECIMAL, HEXADECIMAL, LETTERS = "0123456789", "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz"
_SERIAL_KEYS = ("serialnumber", "servicetag", "serial", "durablename")
_HEX_KEYS = ("guid", "uuid")
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_MAC_LENGTH = 17
_LONG_HEX = re.compile(r"(0x)?([0-9A-Fa-f][:-]?){15,31}[0-9A-Fa-f]")
_SERIAL = re.compile(r"(?=.*\d)[0-9A-Za-z][0-9A-Za-z./_ -]{3,46}[0-9A-Za-z]")
_HEX_SERIAL = re.compile(r"(?=.*[A-Fa-f])[0-9A-Fa-f]+")
_PLACEHOLDERS = frozenset({"0123456789", "1234567890"})
_COUNTING = 6
"""Digits of an address that count: the half of a MAC that its maker numbers by himself."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`text` as recorded. `counting` has, from the right, place and alphabet (lower case) of each character that
    counts; two identities of one `frame` differ in nothing else.
    """

    text: str
    counting: tuple[tuple[int, str], ...]
    frame: str

    @property
    def value(self) -> int:
        """Return the number that the counting characters stand for."""
        number = 0
        for place, alphabet in reversed(self.counting):
            number = number * len(alphabet) + alphabet.index(self.text[place].lower())
        return number

    @property
    def size(self) -> int:
        """How many values there are."""
        size = 1
        for _, alphabet in self.counting:
            size *= len(alphabet)
        return size

    def counted_on(self, distance: int) -> str:
        """The same, `distance` further; it wraps around."""
        number = (self.value + distance) % self.size
        upper = self.text.lower() != self.text
        letters = list(self.text)
        for place, alphabet in self.counting:
            number, digit = divmod(number, len(alphabet))
            letters[place] = alphabet[digit].upper() if upper else alphabet[digit]
        return "".join(letters)


def find_identities(resources: Mapping[str, Mapping[str, Any]]) -> tuple[Identity, ...]:
    """All that stand in the resources, each once, in a fixed order."""
    found: dict[str, Identity] = {}
    for resource in resources.values():
        dells = str(resource.get("Manufacturer", "")).lower().startswith("dell")
        for key, text in _texts(resource, ""):
            for identity in _identities(key.lower(), text.strip(), dells=dells):
                found[identity.text] = identity
    return tuple(found[text] for text in sorted(found))


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """All strings below a value, each with the key that it, or its list, stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)


def _identities(key: str, text: str, *, dells: bool) -> Iterator[Identity]:
    """Those that a property shows: a MAC in all its forms, since texts and host names have others. Dell's SKU is the
    service tag of this very machine; elsewhere it names the product.
    """
    named = key.endswith((*_HEX_KEYS, *_SERIAL_KEYS)) or (dells and key == "sku")
    if not named and len(text) != _MAC_LENGTH:
        return
    digits = re.sub(r"[^0-9A-Za-z]", "", text)
    if not digits.strip("0") or not digits.strip("Ff") or digits in _PLACEHOLDERS:
        return
    if _MAC.fullmatch(text):
        yield from (_address(form) for form in _forms(text, digits))
    elif key.endswith(_HEX_KEYS) and _LONG_HEX.fullmatch(text):
        yield _address(text)
    elif named and not key.endswith(_HEX_KEYS) and _SERIAL.fullmatch(text):
        yield _serial(text)


def _forms(text: str, digits: str) -> list[str]:
    """Return the spellings of a MAC address: as it is, and in lower and upper case, with colons and without."""
    colons = ":".join(digits[i : i + 2] for i in range(0, len(digits), 2))
    return sorted({text, digits.lower(), digits.upper(), colons.lower(), colons.upper()})


def _address(text: str) -> Identity:
    places = _places(text)[:_COUNTING]
    maker = re.sub(r"[^0-9a-f]", "", text[: min(places)].lower())
    return Identity(text, tuple((place, HEXADECIMAL) for place in places), f"address {maker}")


def _serial(text: str) -> Identity:
    """Each of its letters and digits counts."""
    hexadecimal = _HEX_SERIAL.fullmatch(text) is not None
    letters = HEXADECIMAL if hexadecimal else LETTERS
    digits = HEXADECIMAL if hexadecimal else DECIMAL
    counting = tuple((place, digits if text[place].isdigit() else letters) for place in _places(text))
    kinds = "".join(alphabet[-1] for _, alphabet in counting)
    return Identity(text, counting, f"serial {kinds}")


def _places(text: str) -> list[int]:
    """Where its letters and digits stand, from the right."""
    return [place for place in reversed(range(len(text))) if text[place].isalnum()]
