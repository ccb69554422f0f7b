# First process of a host: joins the host's cgroup, which becomes the root of what the host sees; init.sh goes on.
# Arguments: the host's run folder · its cgroup · folder of these scripts · the device template · capabilities
set -eu
echo 0 >"$2/cgroup.procs"
exec unshare --cgroup sh "$3/init.sh" "$1" "$4" "$5"
