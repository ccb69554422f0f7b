#!/bin/sh
# What udhcpc found out about the network, put into force. Names are not needed: the installer is reached by address.
case $1 in
    bound | renew)
        ip addr flush dev "$interface"
        ip addr add "$ip/${mask:-24}" dev "$interface"
        ip link set dev "$interface" up
        for gateway in ${router:-}; do
            ip route replace default via "$gateway" dev "$interface"
            break
        done
        ;;
esac
