#!/bin/sh
# The deployer's work, step by step. Exit code 0: the OS is on the disk, restart from it. Anything else (9: the drives are
# erased): switch off.
# Runs only in the deployer's own memory file system, as its init starts it.
set -u
[ -e /etc/clusterctl-deployer ] || exit 1
cd /deploy || exit 1

. ./messages.sh
. ./http.sh
. ./machine.sh
. ./disk.sh
. ./system.sh
. ./erase.sh

server=$(argument clusterctl.server)
token=$(argument clusterctl.token)
service_key=$(argument clusterctl.key)
booted=$(argument BOOTIF)
case $server,$token,$service_key in
    http://?*,?*,) ;;
    https://?*,?*,?*) ;;
    *) fail "the kernel was started without clusterctl.server and clusterctl.token, or without the key of an https server" ;;
esac

load_drivers
bring_up_network "$booted"
progress "the deployer runs and has the address $(own_address)"
require_uefi
settle_disks
report
set_clock
if erase_ordered; then
    erase_drives
    post_log
    post_done
    message "done: every drive is erased"
    exit 9 # init switches the machine off
fi
progress "writes the OS image to $root ($(basename "$image" .tar.zst), $size bytes)"
partition "$root"
mount_target
write_image
progress "the OS image is written and its checksum is right"
lay_overlay
give_identity
prepare_boot
post_host_key
make_bootable
progress "the disk is ready to boot"
post_log
post_done
message "done: restarting from $root"
