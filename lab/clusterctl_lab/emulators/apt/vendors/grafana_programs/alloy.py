"""Stand-in for Grafana Alloy: sends the journal to Loki as its settings request, and counts the entries that Loki
accepted.

It understands only the settings that the role log_shipping writes, sends JSON where Alloy sends protobuf, and does not
save its position when it ends. Push API: grafana.com/docs/loki/latest/reference/loki-http-api; metric: the reference of
loki.write.
"""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

RETRY_S = 1.0
UNITS_S = {"s": 1, "m": 60, "h": 3600}


class Settings:
    """What is read of `config.alloy`."""

    def __init__(self, text: str) -> None:
        if text.count("{") != text.count("}") or "loki.write" not in text:
            raise SystemExit("alloy: the settings have no loki.write, or a brace is missing")
        self.url = _value(text, "url")
        self.token_file = _value(text, "bearer_token_file")
        self.tenant = _value(text, "tenant_id")
        self.max_age = _value(text, "max_age")
        if not self.url.startswith("http") or not re.fullmatch(r"[0-9]+[smh]", self.max_age):
            raise SystemExit("alloy: the settings have no url, or no max_age")
        labels = re.search(r"external_labels = \{(.*?)\}", text, re.DOTALL)
        self.labels = dict(re.findall(r'(\w+) = "(.*)"', labels[1])) if labels else {}

    def headers(self) -> dict[str, str]:
        """Return the headers of a push; the token is read again each time."""
        found = {"Content-Type": "application/json"}
        if self.token_file:
            found["Authorization"] = f"Bearer {Path(self.token_file).read_text(encoding='ascii').strip()}"
        return found | ({"X-Scope-OrgID": self.tenant} if self.tenant else {})


def _value(text: str, name: str) -> str:
    found = re.search(rf'^\s*{name}\s*= "(.*)"$', text, re.MULTILINE)
    return found[1] if found else ""


class Count(http.server.BaseHTTPRequestHandler):
    """`GET /metrics`."""

    sent = 0

    def do_GET(self) -> None:
        """Answer every path alike."""
        body = f'loki_write_sent_entries_total{{host="stand-in"}} {Count.sent}\n'.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def push(settings: Settings, entry: dict[str, object]) -> None:
    """Send one entry until Loki accepts it."""
    labels = {**settings.labels, "job": "loki.source.journal.node", "transport": str(entry.get("_TRANSPORT", ""))}
    labels["unit"] = str(entry.get("_SYSTEMD_UNIT", ""))
    values = [[f"{entry['__REALTIME_TIMESTAMP']}000", str(entry.get("MESSAGE", ""))]]
    body = json.dumps({"streams": [{"stream": labels, "values": values}]}).encode()
    while True:
        request = urllib.request.Request(settings.url, body, settings.headers())  # noqa: S310 - checked to be http
        try:
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - likewise
        except OSError as error:
            sys.stderr.write(f"alloy: {settings.url}: {error}\n")
            time.sleep(RETRY_S)
        else:
            Count.sent += 1
            return


def run(settings: Settings, listen: str) -> None:
    """Ship until the journal ends, which it never does."""
    address, _, port = listen.rpartition(":")
    server = http.server.ThreadingHTTPServer((address, int(port)), Count)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    age = int(settings.max_age[:-1]) * UNITS_S[settings.max_age[-1]]
    follow = ("journalctl", "--follow", "--no-tail", f"--since=-{age}s", "--output=json")
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as journal:
        for line in journal.stdout or ():
            entry = json.loads(line)
            if entry.get("_COMM") != "alloy":  # without this its own error messages would cause more of them
                push(settings, entry)


def main(arguments: list[str]) -> None:
    """Run `alloy validate FILE` or `alloy run [--server.http.listen-addr=A:P] … FILE`."""
    settings = Settings(Path(arguments[-1]).read_text(encoding="utf-8"))
    options = dict(argument.partition("=")[::2] for argument in arguments[1:-1])
    if arguments[0] == "run":
        run(settings, options.get("--server.http.listen-addr", "127.0.0.1:12345"))


if __name__ == "__main__":
    main(sys.argv[1:])
