# Becomes a virtual machine's QEMU, in the machine's cgroup and in the switch's network namespace, where its wire is.
# Arguments: the machine's cgroup · the switch's network namespace · input of `ip -batch` for the wire · QEMU's own
set -eu
echo 0 >"$1/cgroup.procs"
switch=$2
batch=$3
shift 3
nsenter --net="$switch" ip -batch "$batch"
exec nsenter --net="$switch" "$@"
