"""Stand-in for Loki: accepts lines by its push API as JSON, and finds them by label and substring.

Paths and forms: grafana.com/docs/loki/latest/reference/loki-http-api. It refuses a request without a tenant, as Loki
does with `auth_enabled: true`. It keeps the last lines in memory.
"""

from __future__ import annotations

import collections
import http.server
import json
import re
import urllib.parse

PORT = 3100
KEPT = 20_000
QUERY = re.compile(r'^\{(?P<label>\w+)="(?P<value>[^"]*)"\} \|= "(?P<text>[^"]*)"$')

Line = tuple[dict[str, str], str, str]
lines: collections.deque[Line] = collections.deque(maxlen=KEPT)


class Loki(http.server.BaseHTTPRequestHandler):
    """`POST /loki/api/v1/push`, `GET /loki/api/v1/query_range`."""

    def do_POST(self) -> None:
        """Take lines."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.headers.get("X-Scope-OrgID"):
            self._answer(401, "no org id")
        elif self.path != "/loki/api/v1/push":
            self._answer(404, "404 page not found")
        else:
            for stream in json.loads(body)["streams"]:
                lines.extend((stream["stream"], stamp, text) for stamp, text in stream["values"])
            self._answer(204, "")

    def do_GET(self) -> None:
        """Find lines."""
        url = urllib.parse.urlsplit(self.path)
        asked = QUERY.match(urllib.parse.parse_qs(url.query).get("query", [""])[0])
        if not self.headers.get("X-Scope-OrgID"):
            self._answer(401, "no org id")
        elif url.path != "/loki/api/v1/query_range":
            self._answer(404, "404 page not found")
        elif asked is None:
            self._answer(400, "parse error")
        else:
            found = [
                {"stream": labels, "values": [[stamp, text]]}
                for labels, stamp, text in tuple(lines)
                if labels.get(asked["label"]) == asked["value"] and asked["text"] in text
            ]
            self._answer(200, json.dumps({"status": "success", "data": {"resultType": "streams", "result": found}}))

    def _answer(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("", PORT), Loki).serve_forever()
