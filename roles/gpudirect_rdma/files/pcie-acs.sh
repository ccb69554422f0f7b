#!/bin/sh
# pcie-acs off|check: PCIe Access Control Services of all bridges, the Control register of their ACS capability.
# "off" writes zero where it is not; both print what they found and fail where a bridge still redirects.
set -u

ACS_CONTROL=ECAP_ACS+0x6.w

case "${1:-}" in
off | check) ;;
*)
    echo "usage: $0 off|check" >&2
    exit 2
    ;;
esac
command -v setpci > /dev/null || { echo "setpci is missing: install pciutils" >&2; exit 2; }
devices=$(lspci -D -n) || { echo "lspci failed: nothing is known about ACS" >&2; exit 2; }

bridges=0 capable=0 written=0 left=0
for bridge in $(printf '%s\n' "$devices" | awk '$2 == "0604:" { print $1 }'); do
    bridges=$((bridges + 1))
    # A bridge without the capability is the one thing for which setpci may fail here.
    if ! control=$(setpci -s "$bridge" "$ACS_CONTROL" 2>&1); then
        case "$control" in
        *"not found"*) continue ;;
        esac
        echo "$bridge: $control" >&2
        left=$((left + 1))
        continue
    fi
    capable=$((capable + 1))
    [ "$control" = 0000 ] && continue
    if [ "$1" = off ]; then
        setpci -s "$bridge" "$ACS_CONTROL=0000"
        written=$((written + 1))
        control=$(setpci -s "$bridge" "$ACS_CONTROL")
    fi
    if [ "$control" != 0000 ]; then
        echo "$bridge: ACS control is $control" >&2
        left=$((left + 1))
    fi
done
if [ "$bridges" -eq 0 ]; then
    echo "lspci lists no PCI bridge: nothing is known about ACS" >&2
    exit 2
fi
echo "$bridges bridges, $capable with ACS, $written switched off, $left not off"
[ "$left" -eq 0 ]
