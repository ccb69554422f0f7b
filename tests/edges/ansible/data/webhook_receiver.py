"""Write each alert of Alertmanager's webhook to a file, a line of JSON each: run on a lab host, standard library only."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

FILE = Path(sys.argv[2])


class Receiver(BaseHTTPRequestHandler):
    """Keep the groups that are posted, with the authorization that they came with."""

    def do_POST(self) -> None:
        """Write a group."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with FILE.open("a") as file:
            file.write(json.dumps({"authorization": self.headers["Authorization"], **body}) + "\n")
        self.send_response(200)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
