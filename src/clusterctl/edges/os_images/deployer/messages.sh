#!/bin/sh
# Messages to the console and to the controller, and the end after a failure.

message() {
    echo "clusterctl: $*"
}

# Best effort: a controller that is away for a moment misses a line and nothing else.
progress() {
    message "$1"
    post_text progress "$1" > /dev/null 2>&1
}

# Report the cause, and end: init switches the machine off.
fail() {
    message "FAILED: $*"
    if [ -n "${address_known:-}" ]; then
        post_log
        ask_text failed "$*" || message "the controller did not take the failure"
    fi
    exit 1
}

# The value of `NAME=VALUE` on the kernel's command line; the last one counts.
argument() {
    tr ' ' '\n' < /proc/cmdline | sed -n "s/^$1=//p" | tail -n 1
}
