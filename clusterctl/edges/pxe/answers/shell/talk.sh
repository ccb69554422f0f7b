# Speaks to the install service. POSIX sh, with what the installers bring: curl, wget, or debian-installer's busybox, whose
# wget cannot post and whose nc can.
# Given: T, the attempt's URL; WORK, a folder of our own. Silence is met by TRIES attempts, PAUSE seconds apart.
: "${TRIES:=300}" "${PAUSE:=2}" "${LOOK:=1}" "${SET_CLOCK:=set_clock}" "${POWER_OFF:=poweroff}"
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
mkdir -p "$WORK"
TAB=$(printf '\t')

# get PATH, post PATH FILE: 0 done, 1 refused for good, 2 no answer in all that time. The answer is in $WORK/answer;
# $unsure where an earlier attempt may have been heard although its answer was not.
get() { call get_once "$1"; }
post() { call post_once "$1" "$2"; }

call() {
    tries=$TRIES
    unsure=
    while :; do
        status=$("$@")
        case $status in
            2??) return 0 ;;
            408 | 429) ;;
            4??) return 1 ;;
            *) unsure=yes ;;
        esac
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 2
        sleep "$PAUSE"
    done
}

# tell PATH WORDS: says it once, and goes on whether or not it was heard.
tell() {
    printf '%s\n' "$2" > "$WORK/words"
    post_once "$1" "$WORK/words" > /dev/null
}

# Both print the status of the answer, or 000 where there was none.
get_once() {
    if command -v curl > /dev/null; then
        with_curl "$T/$1"
    else
        with_wget "$T/$1"
    fi
}

post_once() {
    if command -v curl > /dev/null; then
        with_curl -H 'Content-Type: text/plain' -H 'Expect:' --data-binary "@$2" "$T/$1"
    elif wget --help 2>&1 | grep -q -e --post-file; then
        with_wget --header='Content-Type: text/plain' --post-file="$2" "$T/$1"
    else
        with_nc "$1" "$2"
    fi
}

with_curl() {
    curl -s --connect-timeout 10 --max-time 300 -o "$WORK/answer" -w '%{http_code}' "$@" > "$WORK/status" || echo 000 > "$WORK/status"
    cat "$WORK/status"
}

with_wget() {
    if wget -O "$WORK/answer" "$@" 2> "$WORK/said"; then
        echo 200
    else
        status=$(sed -n -e 's/.*HTTP\/1\.[01] \([0-9][0-9][0-9]\).*/\1/p' -e 's/.*ERROR \([0-9][0-9][0-9]\):.*/\1/p' "$WORK/said" | tail -n 1)
        echo "${status:-000}"
    fi
}

# The request goes through a pipe that stays open until the answer is there: a server takes its end for a hang-up.
with_nc() {
    address=${T#http://}
    address=${address%%/*}
    case $address in
        *:*) ;;
        *) address=$address:80 ;;
    esac
    rm -f "$WORK/request" "$WORK/response"
    mknod "$WORK/request" p
    nc "${address%:*}" "${address##*:}" < "$WORK/request" > "$WORK/response" 2> "$WORK/said" &
    asking=$!
    (
        printf 'POST /%s/%s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n' "${T#http://*/}" "$1" "$address"
        printf 'Content-Type: text/plain\r\nContent-Length: %s\r\n\r\n' "$(($(wc -c < "$2")))"
        cat "$2"
        wait_for "$asking"
    ) > "$WORK/request" 2> /dev/null
    wait "$asking"
    sed -e '1,/^.\{0,1\}$/d' "$WORK/response" > "$WORK/answer"
    status=$(sed -n -e '1s/^HTTP\/1\.[01] \([0-9][0-9][0-9]\).*/\1/p' "$WORK/response")
    echo "${status:-000}"
}

wait_for() {
    looks=300
    while kill -0 "$1" && [ "$looks" -gt 0 ]; do
        looks=$((looks - 1))
        sleep "$LOOK"
    done
}

set_clock() {
    date -u -s "@$1" && hwclock -u -w
}
