#!/usr/bin/env bash
# A session with the gateway through nc: an order lives and ends, a quote is asked for, a line is
# not understood, and the gateway is told to stop.
#
#   examples/gateway/session.sh build/release/bin/ordo
set -euo pipefail

ordo=${1:?usage: session.sh PATH_OF_ORDO}
here=$(dirname "${BASH_SOURCE[0]}")
folder=$(mktemp -d)
"$ordo" gateway --config "$here/gateway.toml" --listen 127.0.0.1:0 --no-admin >"$folder/out" &
gateway=$!
trap 'kill $gateway 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q '^listening' "$folder/out"; do
  kill -0 $gateway
  sleep 0.01
done
port=$(sed -n 's/^listening .*:\([0-9]*\)$/\1/p' "$folder/out")

# say LINE...: sends the lines, prints them and the replies; the times differ from run to run.
say() {
  printf -- '-> %s\n' "$@"
  printf '%s\n' "$@" | nc -N -w 30 127.0.0.1 "$port" | sed -E 's/t([01])=[0-9]+/t\1=.../g; s/^/<- /'
}

echo "An order: routed, partly filled, replaced, cancelled. Replies of one id come in order."
say 'r1 42 NEW ACME BUY 100 99.5' 'r2 42 FILL 40' 'r3 42 REPLACE 80 99.25' 'r4 42 STATUS' 'r5 42 CANCEL' \
  'r6 42 FILL 1'

echo "A quote has no id to be in order with."
say 'q1 0 QUOTE ACME 10'

echo "A line that is no request gets an answer, and the connection lives."
say 'hello' 'r7 43 STATUS'

kill -TERM $gateway
status=0
wait $gateway || status=$?
echo "The gateway finished what it had admitted; exit status $status."
