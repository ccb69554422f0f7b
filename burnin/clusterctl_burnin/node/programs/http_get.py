"""Runs on a node, as the built-in probe `http-get URL`: asks without a proxy, and needs no curl.

Standard library only, Python 3.9.
"""

import sys
import urllib.request

if __name__ == "__main__":
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(sys.argv[1]) as answer:
        sys.stdout.buffer.write(answer.read())
