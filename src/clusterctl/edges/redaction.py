"""Takes secrets out of whatever is kept or shown, in each of the forms that they take on their way."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from ahocorasick_rs import BytesAhoCorasick

SHORTEST = 4  # a shorter secret would blank out half of every text
MASK = "(secret)"
_SHORTEST_BASE64 = 8


class Redaction:
    """Replaces every secret that it knows, longest first; one of several lines also line by line. Thread-safe.

    A text is searched for all of them at once, however many they are.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._packs: tuple[_Pack, ...] = ()
        self._known: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Know these as well."""
        parts = {part for secret in secrets for part in (secret, *secret.splitlines()) if len(part) >= SHORTEST}
        with self._lock:
            fresh = parts - self._known
            if fresh:
                self._known |= fresh
                self._packs = _packed(self._packs, {form for part in fresh for form in forms(part)})

    def __call__(self, text: str) -> str:
        packs = self._packs
        if not packs:
            return text
        content = _encoded(text)
        found = {form for pack in packs for form in pack.within(content)}
        for form in sorted(found, key=lambda form: (-len(form), form)):
            text = text.replace(form, MASK)
        return text

    def bytes(self, content: bytes) -> bytes:
        """As of text; what is no UTF-8 stays as it is."""
        return self(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class _Pack:
    """Forms that are looked for in one pass (Aho–Corasick)."""

    def __init__(self, forms: Iterable[str]) -> None:
        self.forms = tuple(forms)
        self._automaton = BytesAhoCorasick([_encoded(form) for form in self.forms])

    def within(self, content: bytes) -> Iterator[str]:
        """The forms that `content` holds, also where one overlaps another; each as often as it stands there."""
        return (self.forms[index] for index, _, _ in self._automaton.find_matches_as_indexes(content, overlapping=True))


def _packed(packs: tuple[_Pack, ...], forms: set[str]) -> tuple[_Pack, ...]:
    """With `forms` added. Each pack is more than twice as large as the next: there are few of them, and secrets that
    are learnt one by one do not cost a rebuilding of everything each time.
    """
    kept = list(packs)
    while kept and len(kept[-1].forms) <= 2 * len(forms):
        forms = forms.union(kept.pop().forms)
    return (*kept, _Pack(forms))


def _encoded(text: str) -> bytes:
    """Bytes in which a text is found exactly where its characters are, those that are no Unicode included."""
    return text.encode("utf-8", "surrogatepass")


KNOWN = Redaction()
"""What this process has read from the site's secret places: for its log and its last words."""


def forms(secret: str) -> Iterator[str]:
    """As it is; in JSON, once and within JSON; in Python's `repr`; in a URL or form, once and twice, which is how
    OAuth's PLAINTEXT signature has it (RFC 5849, 3.4.4 in 3.5.1); and within base64 in each of three ways.
    """
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(json.dumps(secret)[1:-1])[1:-1]
    yield repr(secret)[1:-1]
    raw = secret.encode("utf-8", "surrogateescape")
    yield quote(raw, safe="")
    yield quote(raw)
    yield quote_plus(raw)
    yield quote(quote(raw, safe=""), safe="")
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + raw).decode()
        inner = whole[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        if len(inner) >= _SHORTEST_BASE64:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
