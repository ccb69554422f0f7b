#!/bin/sh
# Talking to the installer. A controller may be restarted meanwhile: everything but progress is tried for ten minutes.

RUN=${DEPLOYER_RUN:-/run} # elsewhere when it is tried without a machine
ANSWER=$RUN/answer
PATIENCE=120 # tries, 5 s apart
PAUSE=5
QUEUE=1440 # tries while the installer reports that it is busy

# curl, over TLS with the one key that the command line names. Firmware has verified by the site's authority the file that
# holds this command line. A key needs no clock, as a certificate does: machines' clocks may be years off here.
request() {
    if [ -n "${service_key:-}" ]; then
        curl --insecure --pinnedpubkey "sha256//$service_key" "$@"
    else
        curl "$@"
    fi
}

# ask NAME [CURL OPTION…]: its body goes to $ANSWER. 0: taken; 1: refused; 2: no answer.
# `unsure` is set where an earlier try may have arrived although its answer did not.
ask() {
    name=$1
    shift
    unsure=
    tries=0
    while [ "$tries" -lt "$PATIENCE" ]; do
        rm -f "$ANSWER"
        code=$(request --silent --output "$ANSWER" --write-out '%{http_code}' --connect-timeout 10 --max-time 120 \
            "$@" "$server/t/$token/$name") || code=000
        case $code in
            2??) return 0 ;;
            408 | 425 | 429 | 503) ;;
            000 | 5??) unsure=yes ;;
            *) return 1 ;;
        esac
        tries=$((tries + 1))
        sleep "$PAUSE"
    done
    return 2
}

ask_text() {
    printf '%s\n' "$2" > "$RUN/text"
    ask "$1" --data-binary "@$RUN/text" --header 'Content-Type: text/plain; charset=utf-8'
}

# One short try.
post_text() {
    printf '%s\n' "$2" > "$RUN/text"
    request --silent --max-time 10 --data-binary "@$RUN/text" --header 'Content-Type: text/plain; charset=utf-8' \
        "$server/t/$token/$1"
}

refusal() {
    if [ -s "$ANSWER" ]; then
        head -c 500 "$ANSWER" | tr '\n' ' '
    else
        echo "no message, HTTP status $code"
    fi
}

post_log() {
    { cat "$RUN/deploy.log"; dmesg; } 2> /dev/null | tail -c 4000000 | gzip > "$RUN/log.gz"
    request --silent --max-time 60 --data-binary "@$RUN/log.gz" --header 'Content-Type: application/gzip' \
        "$server/t/$token/log" > /dev/null 2>&1
}

# A lost answer to `done` cannot be asked for again, since the token dies with it.
post_done() {
    ask_text "done" "the OS is on the disk" && return
    [ "$code" = 404 ] && [ -n "$unsure" ] && return
    fail "the controller did not take the message that the work is done: $(refusal)"
}

# The bytes of $image on descriptor 3, begun again where a broken connection left off. The installer lets so many at
# once have an image and answers the others 503: a place in that queue is waited for much longer.
stream() {
    offset=0
    tries=0
    waited=0
    while [ "$offset" -lt "$size" ] && [ "$tries" -lt "$PATIENCE" ]; do
        transfer=$(request --silent --fail --output /dev/fd/3 --write-out '%{http_code} %{size_download}' --range "$offset-" \
            --connect-timeout 10 --speed-limit 1000 --speed-time 60 "$server$image")
        case $transfer in
            206\ *) arrived=${transfer#* } ;;
            200\ *)
                [ "$offset" -eq 0 ] || return 1 # it began again from the start: the bytes in the pipe are wrong
                arrived=${transfer#* }
                ;;
            503\ *)
                waited=$((waited + 1))
                [ "$waited" -le "$QUEUE" ] || return 1
                sleep "$PAUSE"
                continue
                ;;
            *) arrived=0 ;;
        esac
        offset=$((offset + arrived))
        [ "$offset" -lt "$size" ] || return 0
        if [ "$arrived" -gt 0 ]; then
            tries=0
        fi
        tries=$((tries + 1))
        message "the image's stream broke off at $offset of $size bytes (curl: ${transfer:-nothing}); it goes on in $PAUSE s" >&2
        sleep "$PAUSE"
    done
    [ "$offset" -ge "$size" ]
}
