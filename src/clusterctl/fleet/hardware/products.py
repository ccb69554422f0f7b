"""Products by the names that BMCs, drivers and SKU files give them: GPUs with their form factor, machines."""

from __future__ import annotations

import re

_FORM = re.compile(r"(?:(?<![\s-])[\s-]+)?(?<![A-Za-z])(SXM|PCI-?E|NVL)\d*(?![A-Za-z])", re.IGNORECASE)
_SUPERCHIP = re.compile(r"\bG[BH]\d", re.IGNORECASE)
"""In names of these, NVL is the rack's."""


def form_of(gpu: str) -> str:
    """Return the form factor that a GPU's name has: `SXM`, `NVL` or `PCIE`; empty where it has none.

    An H100 NVL is a card for a PCIe slot, and another product than the H100 PCIe.
    """
    found = {match[1].upper().replace("-", "") for match in _FORM.finditer(gpu)}
    if _SUPERCHIP.search(gpu):
        found.discard("NVL")
    return next((form for form in ("NVL", "SXM", "PCIE") if form in found), "")


def product_of(gpu: str) -> str:
    """Return a GPU's name without its form factor: `H100` of `H100 SXM5`."""
    return _FORM.sub("", gpu).strip() if form_of(gpu) else gpu


def names_gpu(text: str, wanted: str) -> bool:
    """Return whether a reported GPU is what a SKU names. Where one of them has no form factor, the product decides."""
    one, other = form_of(text), form_of(wanted)
    if one and other and one != other:
        return False
    return names_product(text, wanted) or names_product(product_of(text), product_of(wanted))


def names_product(text: str, part: str) -> bool:
    """Return whether the text has the part as a product of its own: an L40S or an A4000 is no L40 or A40, a GH200 no
    H200. A form factor may follow without a space: H100SXM5.
    """
    words = rf"(?<![A-Za-z0-9]){re.escape(part)}(?!\d|[A-Za-z](?![A-Za-z]))"
    return re.search(words, text, re.IGNORECASE) is not None


def names_machine(text: str, part: str) -> bool:
    """Return whether a machine's model is what a SKU names: an R760xa is no R760, an XE9680L no XE9680.

    A number may follow letters: the rack GB200 NVL72 is a GB200 NVL.
    """
    before = r"(?<!\d)" if part[:1].isdigit() else r"(?<![A-Za-z])"
    after = r"(?![A-Za-z0-9])" if part[-1:].isdigit() else r"(?![A-Za-z])"
    return re.search(before + re.escape(part) + after, text, re.IGNORECASE) is not None
