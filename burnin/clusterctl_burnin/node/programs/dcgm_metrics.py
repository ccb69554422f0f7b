"""Runs on a node, as the built-in probe `dcgm-metrics SECONDS`: what the site's dcgm-exporter reports of the GPUs.

Standard library only, Python 3.9. Nothing is asked where the site names no exporter.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Any

MOST = 4 << 20  # bytes; eight GPUs with every field have a tenth of it


def metrics(text: str) -> list[str]:
    """Return the lines with a value of DCGM's, without comments and the exporter's own figures."""
    return [line for line in text.splitlines() if line.startswith("DCGM_")]


def main(requirements: dict[str, Any], seconds: float) -> int:
    """Print `{"url", "complaint", "metrics": [line]}`; `url` empty where none is named, `complaint` empty for none."""
    url, error_text, lines = requirements.get("dcgm_exporter") or "", "", []
    if url:
        import urllib.request  # noqa: PLC0415 — its import costs four times what the rest of this program does

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=seconds) as answer:
                lines = metrics(answer.read(MOST).decode(errors="replace"))
        except (OSError, ValueError) as error:
            error_text = str(error)[:300] or type(error).__name__
    json.dump({"url": url, "complaint": error_text, "metrics": lines}, sys.stdout)
    return 0


if __name__ == "__main__":
    patience = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))
    sys.exit(main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")), patience * float(sys.argv[1])))
