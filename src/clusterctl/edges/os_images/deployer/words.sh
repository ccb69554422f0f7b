#!/bin/sh
# What is said to the person at the console and to the controller, and how the work ends badly.

say() {
    echo "clusterctl: $*"
}

# Best effort: a controller that is away for a moment misses a line and nothing else.
progress() {
    say "$1"
    post_text progress "$1" > /dev/null 2>&1
}

# Tell everyone why, and end: init switches the machine off.
fail() {
    say "FAILED: $*"
    if [ -n "${address_known:-}" ]; then
        post_log
        ask_words failed "$*" || say "the controller could not be told"
    fi
    exit 1
}

# The value of `NAME=VALUE` on the kernel's command line; the last one counts.
argument() {
    tr ' ' '\n' < /proc/cmdline | sed -n "s/^$1=//p" | tail -n 1
}
