"""Writes a new site directory."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.resources import resource
from clusterctl.edges.site.roles import GIVEN, role_order, shipped_roles
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.roles.selection import recommended_section

_GITIGNORE = "secrets/*\n!secrets/README.md\nstate/\n"


def write_site(folder: Path) -> tuple[Path, ...]:
    """Write a commented site into `folder` (new or empty); the files written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("is there already and not empty", where=str(folder), remedy="name a new directory")
    templates = resource("site")
    secrets = folder / "secrets"
    secrets.mkdir(parents=True)
    secrets.chmod(0o700)
    (folder / "limits").mkdir()
    (folder / "skus").mkdir()
    files = {
        folder / "site.yml": _site_file((templates / "site.yml").read_text(encoding="utf-8")),
        folder / "bmcs.csv": (templates / "bmcs.csv").read_text(encoding="utf-8"),
        folder / "wiring.csv": (templates / "wiring.csv").read_text(encoding="utf-8"),
        secrets / "README.md": (templates / "secrets.md").read_text(encoding="utf-8"),
        folder / ".gitignore": _GITIGNORE,
    }
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    return tuple(files)


def _site_file(template: str) -> str:
    section = recommended_section(role_order(), shipped_roles(), GIVEN)
    return template.replace("# @CONFIGURE@\n", section)
