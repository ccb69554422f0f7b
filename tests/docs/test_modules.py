"""Every module, folder and file of the checkout that the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import OTHERS, PAGES, named, with_docs
from tests.paths import ROOT

pytestmark = with_docs

LIVING = [page for page in (*PAGES, *OTHERS) if not {"adr", "soak"} & set(page.parts)]
"""Decisions and soak runs name the paths of their day."""
_PATH = re.compile(
    r"(?<![\w./-])((?:src/clusterctl|cli/clusterctl_cli|burnin/clusterctl_burnin|lab/clusterctl_lab|lab/tests"
    r"|tests|benchmarks|scripts|playbooks|roles|examples)/[\w./*-]*[\w*])"
)
_MODULE = re.compile(
    r"(?<![\w./-])((?:clusterctl|clusterctl_cli|clusterctl_burnin|clusterctl_lab|benchmarks)(?:\.\w+)+)"
)
_SOURCES = {"clusterctl": "src", "clusterctl_cli": "cli", "clusterctl_burnin": "burnin", "clusterctl_lab": "lab"}


@pytest.mark.parametrize("page", LIVING, ids=named)
def test_every_path_exists(page: Path) -> None:
    """A path may have `*` for any name, and names in capitals for the reader's own."""
    text = page.read_text(encoding="utf-8")
    missing = [path for path in _PATH.findall(text) if not any(ROOT.glob(re.sub(r"[A-Z]{3,}(?!\.md)", "*", path)))]
    assert not missing


@pytest.mark.parametrize("page", LIVING, ids=named)
def test_every_module_exists(page: Path) -> None:
    """A dotted name leads to a module, or to a name that its module defines."""
    text = page.read_text(encoding="utf-8")
    assert not [name for name in _MODULE.findall(text) if not _known(name)]


def _known(name: str) -> bool:
    parts = name.split(".")
    base = ROOT / _SOURCES.get(parts[0], "")
    for length in range(len(parts), 0, -1):
        at = base.joinpath(*parts[:length])
        module = next((file for file in (at.with_suffix(".py"), at / "__init__.py", at) if file.exists()), None)
        if module is not None:
            rest = parts[length:]
            return not rest or (module.is_file() and re.search(rf"\b{rest[0]}\b", module.read_text()) is not None)
    return False
