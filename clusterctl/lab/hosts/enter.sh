# Makes the calling process a host: its cgroup, its network with all wires, then the other namespaces; init.sh goes on.
# Arguments: the host's run folder · its cgroup · the switch's network namespace · init.sh · the device template
# · the capabilities that the host does without
set -eu
echo 0 >"$2/cgroup.procs"
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --net sh -euc '
    if [ -w /proc/sys/net/ipv6/conf/default/disable_ipv6 ]; then
        echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    fi
    exec 9</proc/self/ns/net
    nsenter --net="$3" ip -batch "$1/switch.batch"
    exec 9<&-
    ip -batch "$1/host.batch"
    exec unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=SIGKILL --propagation private \
        sh -eu "$4" "$1" "$5" "$6"
' host "$@"
