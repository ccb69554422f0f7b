"""The real InfiniBand tools of infiniband-diags, redirected to the lab's fabric: scripts of the same names.

They translate speeds in the output: the fabric simulates each generation by the previous one (see `simulator`), so that
HDR in the tool's output becomes NDR, EDR becomes HDR and FDR becomes EDR, in names and in Gb/s. ibsim serves at most
ten clients: the scripts queue on a lock, which the lab also holds while it moves cables. After `ibportstate` has set a
port, its script returns when the lab has applied the change (see `port_states`). Before counters are read, the lab
brings them up to date with what the hosts have sent (see `traffic`). The simulator's sockets are those of the lab's
network namespace, which the scripts enter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

from clusterctl_lab.emulators.fabric.process import preload, tool

_SPEEDS = (
    r"s/\b([0-9]+x ?)HDR\b/\1NDR/g; s/\b([0-9]+x ?)EDR\b/\1HDR/g; s/\b([0-9]+x ?)FDR\b/\1EDR/g; "
    r"s/\b53\.125 Gbps/106.25 Gbps/g; s/\b25\.78125 Gbps/53.125 Gbps/g; s/\b14\.0625 Gbps/25.78125 Gbps/g"
)
_TOOLS = (
    *("dump_fts", "ibhosts", "iblinkinfo", "ibnetdiscover", "ibportstate", "ibqueryerrors", "ibroute", "ibswitches"),
    *("ibtracert", "perfquery", "saquery", "sminfo", "smpquery"),
)

_READS_COUNTERS = ("ibqueryerrors", "perfquery")

_SCRIPT = """\
#!/bin/bash
# {name} against the simulated fabric of a rehearsal lab.
set -o pipefail
if [ -e {namespace} ] && ! [ {namespace} -ef /proc/self/ns/net ]; then
  exec nsenter --net={namespace} "$0" "$@"
fi
if ! grep -q '@{socket}:ctl' /proc/net/unix; then
  echo '{name}: the fabric of this lab is not running' >&2
  exit 1
fi
{before}exec 9>>{lock}
flock --wait 60 9 || {{ echo '{name}: waited too long for its turn at the simulator' >&2; exit 1; }}
scratch=$(mktemp -d -p {scratch}) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export IBSIM_SOCKNAME={socket} SIM_HOST={node}
LD_PRELOAD={preload} timeout --kill-after=2 30 {tool} "$@" 9>&- | sed -E {speeds} 9>&-
"""
_SETS_PORTS = """status=$?
exec 9>&-
case " $* " in
*' disable '*|*' enable '*|*' reset '*|*' off '*|*' on '*) {python} -I {announce} {socket}:ports || exit 1 ;;
esac
exit "$status"
"""


def write_tools(bin_dir: Path, scratch: Path, lock: Path, *, socket: str, node: str) -> None:
    """Write one executable script per tool under `bin_dir`; `node` is the fabric node from which they query."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(parents=True, exist_ok=True)
    for name in _TOOLS:
        script = bin_dir / name
        template = _SCRIPT + (_SETS_PORTS if name == "ibportstate" else "")
        program = f"{quote(sys.executable)} -I {quote(str(Path(__file__).with_name('announce.py')))}"
        text = template.format(
            name=name,
            namespace=f"/proc/{os.getpid()}/ns/net",
            before=f"{program} {socket}:counters || exit 1\n" if name in _READS_COUNTERS else "",
            socket=socket,
            python=quote(sys.executable),
            announce=quote(str(Path(__file__).with_name("announce.py"))),
            node=node,
            lock=quote(str(lock)),
            scratch=quote(str(scratch)),
            preload=preload(),
            tool=tool(name),
            speeds=quote(_SPEEDS),
        )
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
