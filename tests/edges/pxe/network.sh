# Two network namespaces joined by a cable: this one, where PXE is served on prov0, and a machine's with peer0.
# Run as: unshare --net sh network.sh PIDS-FILE COMMAND…; the machine's namespace is that of the process in PIDS-FILE.
set -eu
pids=$1
shift
ip link set lo up
ip link add prov0 type veth peer name peer0
ip address add 192.0.2.1/24 dev prov0
ip link set prov0 up
unshare --net sleep 600 &
machine=$!
trap 'kill $machine' EXIT
while [ "$(readlink /proc/$machine/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
ip link set peer0 netns $machine
echo $machine > "$pids.part"
mv "$pids.part" "$pids"
"$@"
