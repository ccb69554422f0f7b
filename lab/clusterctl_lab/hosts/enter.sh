# Makes the calling process a host's launcher: its network with all wires, then the other namespaces; join.sh goes on
# as the host's first process. The launcher stays outside the host's cgroup, so that it can reap a killed or frozen init.
# Arguments: the host's run folder · its cgroup · the launchers' cgroup · the switch's network namespace
# · folder of these scripts · the device template · the capabilities that the host does without
set -eu
echo 0 >"$3/cgroup.procs"
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --net sh -euc '
    if [ -w /proc/sys/net/ipv6/conf/default/disable_ipv6 ]; then
        echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    fi
    exec 9</proc/self/ns/net
    nsenter --net="$4" ip -batch "$1/switch.batch"
    exec 9<&-
    ip -batch "$1/host.batch"
    exec unshare --mount --pid --uts --ipc --fork --kill-child=SIGKILL --propagation private \
        sh "$5/join.sh" "$1" "$2" "$5" "$6" "$7"
' host "$@"
