"""Takes secrets out of whatever is kept or shown, in each of the forms that they take on their way.

Every command imports this module: what only a command with secrets needs is imported inside the functions, so that
start-up stays fast.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

SHORTEST = 4  # a shorter secret would blank out half of every text
MASK = "(secret)"
_MASK = MASK.encode()
_SHORTEST_BASE64 = 8


class Redaction:
    """Replaces every secret that it knows; one of several lines also line by line. Thread-safe.

    A text is searched for all of them at once, in linear time, however many they are. Secrets that overlap in it become
    one mask.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._packs: tuple[_Pack, ...] = ()
        self._known: set[str] = set()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Know these as well."""
        parts = {part for secret in secrets for part in (secret, *secret.splitlines()) if len(part) >= SHORTEST}
        while fresh := parts - self._known:
            before = self._packs
            packs = _packed(before, {form for part in fresh for form in forms(part)})
            with self._lock:  # held for the exchange alone: others redact meanwhile
                if self._packs is before:
                    self._packs, self._known = packs, self._known | fresh

    def __call__(self, text: str) -> str:
        packs = self._packs
        if not packs:
            return text
        content = _encoded(text)
        places = sorted(place for pack in packs for place in pack.within(content))
        if not places:
            return text
        kept: list[bytes] = []
        end = 0
        for begin, until in places:
            if begin >= end:
                kept += (content[end:begin], _MASK)
            end = max(end, until)
        return b"".join((*kept, content[end:])).decode("utf-8", "surrogatepass")

    def bytes(self, content: bytes) -> bytes:
        """Redact as in text; what is no UTF-8 stays as it is."""
        return self(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class _Pack:
    """Forms that are looked for in one pass (Aho–Corasick)."""

    def __init__(self, forms: Iterable[str]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        self.forms = tuple(forms)
        encoded = [_encoded(form) for form in self.forms]
        self._automaton = BytesAhoCorasick(encoded, implementation=Implementation.ContiguousNFA)

    def within(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each form that `content` holds, also where one overlaps another."""
        found = self._automaton.find_matches_as_indexes(content, overlapping=True)
        return ((begin, end) for _, begin, end in found)


def _packed(packs: tuple[_Pack, ...], forms: set[str]) -> tuple[_Pack, ...]:
    """Return the packs with `forms` added. Each pack is more than twice as large as the next: so there are few, and
    a new secret does not rebuild all of them.
    """
    kept = list(packs)
    while kept and len(kept[-1].forms) <= 2 * len(forms):
        forms = forms.union(kept.pop().forms)
    return (*kept, _Pack(forms))


def _encoded(text: str) -> bytes:
    """Return bytes in which a text is found exactly where its characters are, invalid Unicode included."""
    return text.encode("utf-8", "surrogatepass")


KNOWN = Redaction()
"""All secrets that this process has read. There is one for the whole process, on purpose: a secret must not be shown
wherever it surfaces, also in the log, which is the process's, and in the traceback of an uncaught error, where no
object of a site is at hand. Secrets are only added: one that another site of the same process has read is hidden, too.
Where the secrets of one peer are enough (a BMC, MAAS, a play), a `Redaction` of its own is passed along.
"""


def forms(secret: str) -> Iterator[str]:
    """Yield the secret itself; in JSON, once and within JSON; in Python's `repr`; in a URL or form, once and twice, as
    in OAuth's PLAINTEXT signature (RFC 5849, 3.4.4 in 3.5.1); and within base64 in each of three ways.
    """
    import base64
    import json
    from urllib.parse import quote, quote_plus

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
