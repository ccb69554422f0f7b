"""A host as the host transport sees one: it uses the protocol of `bootstrap.py`; the first argument is its behaviour."""

import json
import os
import sys
import time

manner, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])


def receive(count):
    got = b""
    while len(got) < count:
        part = os.read(0, min(1 << 16, count - len(got)))
        if not part:
            sys.exit(1)
        got += part
    return got


def line():
    got = b""
    while not got.endswith(b"\n"):
        got += receive(1)
    return json.loads(got)


def send(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def task(event, title, host=name, **result):
    shared = {"role": "r", "action": "x", "ignored": False, "seconds": 0.1}
    send(event, host=host, task=title, result=result, **shared)


def stats(kind):
    send("playbook_on_stats", **{key: {name: 1} if key in (kind, "processed") else {} for key in KINDS})


KINDS = ("changed", "dark", "failures", "ok", "processed")

if manner == "gone":
    print("ssh: connect to host: Connection refused", file=sys.stderr)
    sys.exit(255)
if manner == "no-python":
    print("sudo: /usr/bin/python3: command not found", file=sys.stderr)
    sys.exit(127)
receive(size)
request = line()
if manner == "old":
    send("declined", reason="its Python is 3.10, and Ansible needs 3.11")
    sys.exit(0)
if manner == "busy":
    send("waiting", pid="42")
    send("busy", pid="42")
    sys.exit(1)
send("hello", has_bundle=manner != "empty")
sizes = line()
bundle, payload = receive(sizes["bundle"]), receive(sizes["payload"])
if manner == "no-ansible":
    send("end", status="failed", rc=1, output="ModuleNotFoundError: No module named 'ctypes'", full="")
    sys.exit(0)
task("runner_on_start", "One")
if manner == "liar":
    task("runner_on_ok", "One", host="another-host")
    time.sleep(600)
if manner == "nonsense":
    print("\x1b[2J surprise", flush=True)
    time.sleep(600)
task("runner_on_ok", "One", changed=True, stdout=f"{len(bundle)} {len(payload)}")
task("runner_on_start", "Two")
if manner == "dies":
    print("client_loop: send disconnect: Broken pipe", file=sys.stderr)
    sys.exit(255)
if manner == "killed":
    sys.exit(137)
if manner == "hangs":
    os.execvp("sh", ["sh", "-c", "cat > /dev/null; exit 1", "fake_host.py", "hangs", "in", "its", "second", "task"])
if manner == "fails":
    task("runner_on_failed", "Two", msg="no")
    stats("failures")
    send("end", status="failed", rc=2, output="", full="")
    sys.exit(0)
task("runner_on_ok", "Two", stdout=payload.decode())
stats("ok")
send("end", status="successful", rc=0, output="", full="")
