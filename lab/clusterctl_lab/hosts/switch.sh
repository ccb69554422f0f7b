# The lab's switch: a network namespace with its bridges, alive as long as this process is.
# Arguments: input of `ip -batch` · the lab's cgroup for it. Prints `ready` on standard output.
set -eu
echo 0 >"$2/cgroup.procs"
exec 9</proc/self/ns/net
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --net sh -euc '
    if [ -w /proc/sys/net/ipv6/conf/default/disable_ipv6 ]; then
        echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    fi
    ip -batch "$1"
    exec 9<&-
    echo ready
    exec sleep infinity
' switch "$1"
