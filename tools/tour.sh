#!/usr/bin/env bash
# A short tour of what `ordo` does: each step prints a command, runs it, and says what to notice.
#
#   tools/tour.sh build/release/bin/ordo
set -euo pipefail

program=${1:?usage: tour.sh PATH_OF_ORDO}
path=$(realpath "$program")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ordo() { "$path" "$@"; }

# show COMMAND: prints the command as one would type it, runs it, prints status and time.
show() {
  local begin=$EPOCHREALTIME status=0
  printf '\n  $ %s\n' "$1"
  (eval "$1") 2>&1 | sed 's/^/    /' || status=$?
  awk -v a="$begin" -v b="$EPOCHREALTIME" -v s=$status \
    'BEGIN { printf "    (%.2f s, exit status %d)\n", b - a, s }'
}

printf '\n%s: parallel work, ordered results\n' "$(ordo --version)"

printf '\n1. Eight lines, eight workers. One after the other they would sleep 3.9 s; together they take\n'
printf '   as long as the slowest, and the results still come in the order of the lines.\n'
show "printf '%s\n' 9 1 5 3 7 2 8 4 | ordo map -j8 -- sh -c 'sleep 0.\$1; echo slept 0.\$1 s' - {}"

printf '\n2. A line that fails stops nobody. The exit status counts the failures, and the line is kept,\n'
printf '   with the reason, where it can be looked at or run again.\n'
show "printf '%s\n' one two three |
      ordo map -j3 --dlq failed.jsonl -- sh -c '[ \$1 != two ] || exit 3; echo did \$1' - {}"
show "cat failed.jsonl"

printf '\n3. Order where it matters: per key (here the first word). The slow lines of anna keep their\n'
printf '   order and never overlap; those of ben do not wait for them.\n'
show "printf '%s\n' 'anna 1' 'ben 1' 'anna 2' 'ben 2' 'anna 3' 'ben 3' |
      ordo map -j4 --key 1 -- sh -c 'case \$1 in anna*) sleep 0.2 ;; esac; echo \$1' - {}"

printf '\n4. The same rule behind a TCP port: an order is decided in its order, a quote waits for nobody.\n'
printf '   The gateway takes a free port here; SIGTERM then lets it finish what it has admitted.\n'
"$path" gateway --listen 127.0.0.1:0 --no-admin >gateway.txt 2>/dev/null &
gateway=$!
trap 'kill $gateway 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q '^listening' gateway.txt; do
  kill -0 $gateway
  sleep 0.01
done
address=$(sed -n 's/^listening //p' gateway.txt)
show "printf '%s\n' '42 NEW ACME BUY 10 99.5' '42 FILL 4' '42 CANCEL' '0 QUOTE ACME 3' |
      ordo gateway-client --connect $address"
kill -TERM $gateway
wait $gateway

printf '\n5. And durably: a broker for the official Pub/Sub clients. A payment fails, its key waits with what\n'
printf '   is behind it, the other key goes on, and an operator decides.\n'
"$path" serve --listen 127.0.0.1:0 --data data >serve.txt 2>/dev/null &
serve=$!
trap 'kill $serve 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q 'Ctrl-C' serve.txt; do
  kill -0 $serve
  sleep 0.01
done
PUBSUB_EMULATOR_HOST=$(sed -n 's/.*PUBSUB_EMULATOR_HOST=//p' serve.txt)
export PUBSUB_EMULATOR_HOST
show "ordo topics create orders"
show "ordo subscriptions create billing --topic orders --ordered --min-retry-delay 60s"
show "printf '{\"user\":\"%s\",\"do\":\"%s\"}\n' ann cart bob cart ann pay bob pay bob ship |
      ordo pub orders --key-field user"
show "ordo sub billing --exec 'grep -v bob.*pay' --idle 1s"
show "ordo keys billing --blocked"
show "ordo key skip billing bob"
show "ordo sub billing --ack --data --count 1"
kill -TERM $serve
wait $serve

cat <<END

Try next:
  ./run           a broker on 127.0.0.1:8085, with a status page; then $program demo
  $program gateway
  $program map --help
  seq 1000 | $program map -j4 --stats -- true
  ./run test      all tests
  ./run bench     figures beside those of others
Read: README.md, then docs/flows.md (one item through the pool) and ARCHITECTURE.md.
END
