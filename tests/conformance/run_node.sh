#!/usr/bin/env bash
# Runs the official Node client against a server of ours.
#
#   tests/conformance/run_node.sh SERVER WORK_FOLDER [--install]
#
# SERVER is the program, called as SERVER PORT DATA_DIRECTORY. The client is installed into WORK_FOLDER,
# where it stays: with --install from npm's registry, otherwise it has to be there already. Without
# it nothing is tested: exit status 77, and a line that says so.
set -euo pipefail

server=$1
folder=$2/node
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  printf 'SKIPPED: %s\n' "$*" >&2
  exit 77
}

command -v node >/dev/null || skip "there is no node"
mkdir -p "$folder"
cp "$here"/node/* "$folder"
cd "$folder"
if [ "${3:-}" = --install ] && [ ! -d node_modules/@google-cloud/pubsub ]; then
  command -v npm >/dev/null || skip "there is no npm"
  npm install --no-audit --no-fund --no-progress || skip "npm's registry is out of reach"
fi
[ -d node_modules/@google-cloud/pubsub ] || skip "the client is not installed in $folder"
ORDO_PUBSUB_SERVER=$server exec node --test --test-concurrency=1 ./*_test.mjs
