"""What the web page costs over a fleet: time of each page with many open pages, and memory of the service.

    python -m benchmarks.web_load [--nodes 4096] [--streams 50] [--requests 40] [--python PYTHON]...

The journal is that of benchmarks.fleet_report. `clusterctl web` runs as a process of its own; the streams are open all
the time, and while the pages are asked for, one node after the other gets an event, which each stream receives. One
headless Chromium has the fleet page open, draws each change, and loads the page again in every tenth round.

--python names the interpreter of a checkout, more than once to compare: that of another commit gives the baseline of
the same minute.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from playwright.async_api import Page, async_playwright

from benchmarks.fleet_report import fill, name_of
from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import Kind
from clusterctl.operations.context import SiteContext, open_site
from tests.edges.site.ready import write_ready_site
from tests.events import new_event

PATHS = ("/", f"/nodes/{name_of(0)}", "/work-orders", "/nights", "/api/v1/nodes", "/metrics")
PER_USER = 10
RELOAD_EACH = 10
"""Rounds after which Chromium loads the fleet page again."""


async def follow(base: str, token: str, received: list[int]) -> None:
    """Hold one page's stream open, and count the bytes that it receives."""
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("GET", f"{base}/changes?since=999999999", headers={"Authorization": f"Bearer {token}"}) as answer,
    ):
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            received[0] += len(chunk)


async def page_of_chromium(stack: AsyncExitStack, token: str) -> Page | None:
    """Return a page of a headless Chromium; None, with a message, where none is installed."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("without a browser: chromium is not installed")
        return None
    playwright = await stack.enter_async_context(async_playwright())
    browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    stack.push_async_callback(browser.close)
    return await browser.new_page(extra_http_headers={"Authorization": f"Bearer {token}"})


async def drawn(page: Page, base: str, nodes: int) -> float:
    """Load the fleet page; return the seconds until all tiles are there and the page is live."""
    began = time.monotonic()
    await page.goto(base + "/")
    await page.wait_for_function(
        f"document.querySelectorAll('.tile').length >= {nodes} && document.getElementById('live').textContent == 'live'"
    )
    return time.monotonic() - began


async def rounds(context: SiteContext, base: str, page: Page | None, options: argparse.Namespace) -> None:
    """Change a node and ask for each page, again and again; print what each took."""
    seconds: dict[str, list[float]] = {path: [] for path in PATHS}
    spent: dict[str, list[float]] = {path: [] for path in PATHS}
    in_browser: list[float] = []
    async with httpx.AsyncClient(timeout=120, headers={"Authorization": f"Bearer {options.tokens[0]}"}) as client:
        for path in PATHS:
            began = time.monotonic()
            (await client.get(base + path)).raise_for_status()
            print(f"{path}: the first answer after {1000 * (time.monotonic() - began):.0f} ms")
        for number in range(options.requests):
            if page is not None and number % RELOAD_EACH == 0:
                in_browser.append(await drawn(page, base, options.nodes))
            host = {"address": f"10.9.{number // 250}.{number % 250 + 1}"}
            context.journal.append([new_event("node", f"id-{name_of(number)}", Kind.NODE_ADDRESSED, host)])
            for path in PATHS:
                began, before = time.monotonic(), ran_s(options.pid)
                (await client.get(base + path)).raise_for_status()
                seconds[path].append(time.monotonic() - began)
                spent[path].append(ran_s(options.pid) - before)
    for path, found in seconds.items():
        print(f"{path}: {spread(found)}; CPU of the service meanwhile: {spread(spent[path])}")
    if in_browser:
        print(f"the fleet page in Chromium: all tiles within {', '.join(f'{one:.1f}' for one in in_browser)} s")


async def load(context: SiteContext, base: str, options: argparse.Namespace) -> None:
    received = [0]
    async with AsyncExitStack() as stack:
        page = await page_of_chromium(stack, options.tokens[-1])
        streams = [
            asyncio.create_task(follow(base, options.tokens[number // PER_USER], received))
            for number in range(options.streams)
        ]
        await rounds(context, base, page, options)
    alive = sum(not stream.done() for stream in streams)
    for stream in streams:
        stream.cancel()
    for stream in streams:
        with suppress(asyncio.CancelledError, httpx.HTTPError):
            await stream
    print(f"{alive} of {options.streams} streams open to the end; {received[0] / 1e6:.1f} MB received")


def spread(seconds: list[float]) -> str:
    p95 = statistics.quantiles(seconds, n=20)[-1]
    return f"median {1000 * statistics.median(seconds):.0f} ms, p95 {1000 * p95:.0f} ms"


def ran_s(pid: int) -> float:
    """Return how long the threads of a process ran, which depends on no other process; ended threads are left out."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def memory_mb(pid: int) -> float:
    """The most memory that the process has had at a time."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(context: SiteContext, python: str, options: argparse.Namespace) -> None:
    """Serve the site with the clusterctl of this interpreter, and load it."""
    print(python)
    site = str(context.site.folder)
    argv = [str(Path(python).absolute()), "-m", "clusterctl_cli.main", "web", "--site", site, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd="/") as served:
        try:
            assert served.stdout is not None
            address = re.search(r"http://[^/]+", served.stdout.readline())
            assert address is not None
            options.pid = served.pid
            asyncio.run(load(context, address[0], options))
            print(f"the service: {memory_mb(served.pid):.0f} MB at most, {cpu_s(served.pid):.1f} s of CPU")
        finally:
            served.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--python", action="append", help="interpreter of a checkout; this one where none is given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        write_ready_site(site)
        context = open_site(site)
        fill(context, options.nodes)
        file, now = AccountFile(site / "state" / "web"), datetime.now(UTC)
        options.tokens = [
            file.add_token(f"reader{number}", UserRole.VIEWER, "root", now, now + timedelta(days=1))
            for number in range(1 + options.streams // PER_USER)
        ]
        for python in options.python or [sys.executable]:
            measure(context, python, options)
        context.journal.close()


if __name__ == "__main__":
    main()
