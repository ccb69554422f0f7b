"""Renders the templates; all texts are escaped."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from clusterctl.cabling.health.symptoms import span
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.peer_text import visible
from clusterctl.fleet.quantity import figure
from clusterctl.operations.operation import current_time
from clusterctl.site.settings import SiteSettings
from clusterctl_web.live_fleet import Rack, Tile

NAVIGATION = (
    ("/", "Fleet"),
    ("/runs", "Runs"),
    ("/jobs", "Jobs"),
    ("/downtime", "Downtime"),
    ("/incidents", "Incidents"),
    ("/fabric", "Fabric"),
    ("/nights", "Nights"),
    ("/plans", "Maintenance"),
    ("/work-orders", "Work orders"),
    ("/rma", "Returns"),
)
"""Address and title of each entry of the navigation."""


def stamp(at: datetime | None) -> str:
    """Return a moment in UTC, empty for none."""
    return at.strftime("%Y-%m-%d %H:%M:%S") if at else ""


def shown(value: object) -> object:
    """Return what a template prints for a value: in texts of others, each control and bidi character is visible."""
    if isinstance(value, Markup | int | float | Undefined):
        return value  # markup is what a template of ours has made
    return visible(str(value))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("clusterctl_web"),
        autoescape=True,  # what machines report is hostile
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["stamp"] = stamp
    environment.filters["span"] = span
    environment.filters["figure"] = figure
    environment.filters["slug"] = lambda text: str(text).replace(" ", "-")
    environment.globals["navigation"] = NAVIGATION
    environment.globals["UserRole"] = UserRole
    return environment


TEMPLATES = _environment()


@lru_cache(maxsize=1 << 16)
def tile_html(tile: Tile) -> Markup:
    """Return the tile of a node, escaped. It is kept: all readers have the same tiles, of thousands of nodes."""
    macros = TEMPLATES.get_template("tile.html.j2").module
    return Markup(macros.tile(tile))  # type: ignore[attr-defined]  # noqa: S704 — the template escapes


TEMPLATES.globals["tile"] = tile_html


@dataclass
class RacksHtml:
    """The racks as HTML: rendered once for all readers, until they have changed. Thread-safe."""

    _made: tuple[tuple[Rack, ...], Markup, Mapping[str, int]] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, racks: tuple[Rack, ...]) -> tuple[Markup, Mapping[str, int]]:
        """Return the racks, escaped, and the number of tiles by their marks."""
        with self._lock:
            if self._made is None or self._made[0] is not racks:
                html = Markup(TEMPLATES.get_template("racks.html.j2").render(racks=racks))  # noqa: S704 — it escapes
                self._made = racks, html, Counter(tile.mark for rack in racks for tile in rack.tiles)
            return self._made[1], self._made[2]


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders pages of one site."""

    settings: SiteSettings

    def html(self, request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """Return a page. Each template has `site`, `simulated`, `now`, `actor` (or none) and `path`."""
        about = {
            "site": self.settings.name,
            "simulated": self.settings.simulated,
            "now": current_time(),
            "actor": request.state.actor,
            "path": request.url.path,
        }
        return HTMLResponse(TEMPLATES.get_template(template).render(**{**about, **values}), status)
