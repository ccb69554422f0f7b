"""A kernel message without what differs from one time to the next: numbers, addresses, names become placeholders."""

from __future__ import annotations

import re

_PLACES = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", "<mac>"),
    (r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", "<pci>"),
    (r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\b", "<pci>"),
    (r"\b[0-9a-f]{4}:[0-9a-f]{4}\b", "<id>"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "<ip>"),
    (r"\b0x[0-9a-f]+\b", "<hex>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b", "<hex>"),
    (r"\bsd[a-z]{1,2}(?=\d*\b)", "sd<disk>"),
    (r"\d+(?:\.\d+)?", "<n>"),
)
_PLACE = re.compile("|".join(f"({regex})" for regex, _ in _PLACES), re.IGNORECASE)
_NAMES = tuple(name for _, name in _PLACES)


def template(text: str) -> str:
    """`nvme nvme3: 96/0/0 queues` → `nvme nvme<n>: <n>/<n>/<n> queues`, of the message's first line."""
    line = text.partition("\n")[0].strip()
    return _PLACE.sub(lambda match: _NAMES[(match.lastindex or 1) - 1], line)
