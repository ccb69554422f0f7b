# FOLDER ADDRESS MAC…: systemd-networkd with the files of FOLDER, in this network and mount namespace of its own, on one
# veth port for each MAC. Ends when an interface has ADDRESS (empty: once networkd has looked at all interfaces), or after
# a minute and a half. Prints a JSON pair a line: what `ip` tells; networkd's log goes to stderr.
set -eu
folder=$1 address=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp /run/systemd/network
chown -R systemd-network:systemd-network /run/systemd/netif
echo test >/run/systemd/container
cp "$folder"/* /run/systemd/network/
mkdir /run/empty
mount --bind /run/empty /etc/systemd/network
mount -t sysfs -o ro sysfs /sys
ip link set lo up
number=0
for mac in "$@"; do
    number=$((number + 1))
    ip link add "port$number" address "$mac" type veth peer name "wire$number"
    ip link set "wire$number" up
done
/lib/systemd/systemd-networkd 2>/run/log &
networkd=$!
for _ in $(seq 900); do
    if [ -n "$address" ]; then
        ip -o addr | grep -qF " $address " && ip route show default | grep -q . && break
    else
        grep -q 'Enumeration completed' /run/log && break
    fi
    sleep 0.1
done
pair() { printf '["%s", %s]\n' "$1" "$(printf '%s' "$2" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))')"; }
pair addr "$(ip -j -d addr)"
pair route "$(ip -j route show default)"
kill "$networkd"
wait "$networkd" || true
cat /run/log >&2
