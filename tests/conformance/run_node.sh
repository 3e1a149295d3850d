#!/usr/bin/env bash
# Runs the official Node client of Pub/Sub against `ordo serve`.
#
#   run_node.sh prepare PACKAGES FOLDER     # the client into PACKAGES, where it stays; the tests into FOLDER
#   run_node.sh test PROGRAM FOLDER FILE    # PROGRAM is `ordo`
#
# Where ORDO_HISTORY_DIR names a folder, the histories that a test writes there are judged after it.
# Where there is no node, or the client cannot be fetched, nothing is tested: exit status 77, and a
# line that says why.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

skip() {
  printf 'SKIPPED: the official Node client was not tested: %s\n' "$*" >&2
  exit 77
}

need_node() {
  command -v node >/dev/null || skip "there is no node"
  local version
  version=$(node --version)
  version=${version#v}
  [ "${version%%.*}" -ge 18 ] || skip "node is $version; it takes 18"
}

prepare() {
  local packages=$1 folder=$2
  need_node
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$here"/node/* "$folder"
  python3 "$here/fetch_npm.py" "$here/node/package-lock.json" "$packages"
  ln -s "$packages/node_modules" "$folder/node_modules"
}

run_test() {
  local program=$1 folder=$2 file=$3
  need_node
  [ -e "$folder/node_modules" ] || skip "its packages are not in $folder"
  cd "$folder"
  # The client would look for the metadata of a Google machine.
  export METADATA_SERVER_DETECTION=none ORDO_PROGRAM=$program ORDO_SOURCE=$here/../..
  [ -z "${ORDO_HISTORY_DIR:-}" ] || rm -rf "$ORDO_HISTORY_DIR"
  node --test "$file"
  if [ -n "${ORDO_HISTORY_DIR:-}" ]; then
    python3 "$here/../support/check_histories.py" "$ORDO_HISTORY_DIR"
  fi
}

case $1 in
  prepare) prepare "$2" "$3" ;;
  test) run_test "$2" "$3" "$4" ;;
esac
