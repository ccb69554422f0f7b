#!/bin/sh
# What udhcpc calls with a lease: says what it got.
[ "$1" = bound ] && echo "ip=$ip mask=$mask siaddr=${siaddr:-} file=${boot_file:-${bootfile:-}}"
exit 0
