"""What a reader of the fleet page sees without a click and without scrolling."""

from __future__ import annotations

from collections.abc import Mapping

from playwright.sync_api import Page


def out_of_sight(page: Page, causes: Mapping[str, str], height: int) -> list[str]:
    """Return the nodes whose tile is not whole on a screen of that height, or whose cause is cut off or another one."""
    return [name for name, cause in causes.items() if not _in_sight(page, name, cause, height)]


def _in_sight(page: Page, name: str, cause: str, height: int) -> bool:
    tile = page.locator(f"#tile-{name}")
    box, seen = tile.bounding_box(), tile.evaluate("e => [e.scrollWidth, e.clientWidth]")
    whole = box is not None and box["y"] + box["height"] <= height and 0 < seen[0] <= seen[1]
    return whole and cause in tile.locator(".cause").inner_text()
