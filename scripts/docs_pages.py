"""Hooks of `mkdocs build`: add a page for each role, and list decisions and soak runs by their folders."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\[([^]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_ROLE = re.compile(r"roles/(\w+)/README\.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the folders that grow by one file a time."""
    listed = {"Decisions": "adr", "Soak runs": "soak"}
    for title, folder in listed.items():
        pages: list[Any] = [str(page.relative_to(DOCS)) for page in sorted((DOCS / folder).glob("*.md"))]
        config.nav = [*(config.nav or []), {title: pages}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each role."""
    for readme in sorted(ROOT.glob("roles/*/README.md")):
        files.append(File.generated(config, f"roles/{readme.parent.name}.md", abs_src_path=str(readme)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at roles to their pages; a link to another file outside of docs/ becomes text."""
    del config, files
    here = page.file.src_uri
    source = ROOT / f"roles/{Path(here).stem}/README.md" if here.startswith("roles/") else DOCS / here

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if re.match(r"[a-z]+:", target):
            return link[0]
        path = os.path.relpath((source.parent / target).resolve(), ROOT)
        role = _ROLE.fullmatch(path)
        if role is None and not path.startswith("docs/"):
            return text
        place = f"roles/{role[1]}.md" if role else path.removeprefix("docs/")
        return f"[{text}]({os.path.relpath(place, Path(here).parent)}{anchor})"

    return _LINK.sub(replaced, markdown)
