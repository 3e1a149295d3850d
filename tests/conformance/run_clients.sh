#!/usr/bin/env bash
# Runs the official Python, Go and Java clients of Pub/Sub against `ordo serve`.
#
#   run_clients.sh PROGRAM FOLDER [LANGUAGE ...]   # PROGRAM is `ordo`; FOLDER keeps what was fetched
#
# What they need is fetched in the versions written here, and kept. A language whose tools are not on this
# machine, or whose packages cannot be fetched, is left out with a line `SKIPPED: language: reason`.
# Exit status 0: no test failed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
pubsub_python=2.43.0   # As in python/requirements.txt and go/go.mod.
pubsub_go=v2.8.0

program=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
languages=("$@")
[ $# -gt 0 ] || languages=(python go java)

# Clients would ask the metadata server of a Google machine, or send their calls to a proxy.
export ORDO_PROGRAM=$program NO_GCE_CHECK=true GCE_METADATA_HOST=127.0.0.1:1
export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost

failures=0
summary=()

skip() {
  summary+=("SKIPPED: $1: $2")
  printf 'SKIPPED: %s: %s\n' "$1" "$2"
}

# retry LOG COMMAND...: a registry may be busy; three attempts.
retry() {
  local log=$1 attempt pause=2
  shift
  for attempt in 1 2 3; do
    if "$@" >"$log" 2>&1; then return 0; fi
    if [ $attempt -lt 3 ]; then
      sleep $((pause + RANDOM % 2))
      pause=$((pause * 3))
    fi
  done
  return 1
}

# The last line of a log that says something.
reason() { grep -vE '^[[:space:]]*$' "$1" | tail -n 1 | cut -c 1-200; }

# close NAME STATUS PASSED FAILED SKIPPED LOG
close() {
  local line
  line=$(printf '%s: %d passed, %d failed, %d skipped' "$1" "$3" "$4" "$5")
  if [ "$2" != 0 ] || [ "$4" -gt 0 ] || [ "$3" = 0 ]; then
    failures=$((failures + 1))
    line+=" (FAILED, see $6)"
    tail -n 150 "$6"
  fi
  summary+=("$line")
  printf '%s\n' "$line"
}

# ---------------------------------------------------------------- Python

# Of a line such as `1 failed, 74 passed, 2 skipped in 36.02s` the number before the word.
pytest_count() { sed -nE "s/.*(^|[^0-9])([0-9]+) $1.*/\2/p" "$2" | tail -n 1 | grep . || echo 0; }

close_pytest() {
  local errors
  errors=$(pytest_count 'errors?' "$3")
  close "$1" "$2" "$(pytest_count passed "$3")" $(($(pytest_count failed "$3") + errors)) \
    "$(pytest_count skipped "$3")" "$3"
}

prepare_python() {
  local venv=$folder/venv wanted
  wanted=$(sha256sum <"$here/python/requirements.txt")
  if [ "$(cat "$venv/wanted" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv" "$folder/python-published"
    python3 -m venv "$venv" >"$folder/venv.log" 2>&1 || return 1
    retry "$folder/venv.log" "$venv/bin/pip" install -q -r "$here/python/requirements.txt" || return 1
    printf '%s\n' "$wanted" >"$venv/wanted"
  fi
  if [ ! -f "$folder/python-published/tests/system.py" ]; then
    retry "$folder/venv.log" "$venv/bin/pip" download -q --no-deps --no-binary :all: \
      -d "$folder/sdist" "google-cloud-pubsub==$pubsub_python" || return 1
    mkdir -p "$folder/python-published"
    tar -xzf "$folder/sdist/google_cloud_pubsub-$pubsub_python.tar.gz" --strip-components=1 \
      -C "$folder/python-published" || return 1
  fi
}

run_python() {
  command -v python3 >/dev/null || { skip python "there is no python3"; return; }
  prepare_python || { skip python "its packages could not be fetched: $(reason "$folder/venv.log")"; return; }
  local python=$folder/venv/bin/python published status=0 published_status=0
  export PYTHONDONTWRITEBYTECODE=1
  run_python_published >"$folder/python-published.log" 2>&1 &
  published=$!
  (cd "$here/python" && timeout 300 "$python" -m pytest -q -p no:cacheprovider .) \
    >"$folder/python.log" 2>&1 || status=$?
  wait $published || published_status=$?
  close_pytest python $status "$folder/python.log"
  close_pytest "python, published tests" $published_status "$folder/python-published.log"
}

# Most of these wait, for a minute some of them: so, side by side, each worker with a server of its own.
# Transport `rest` is left out: with PUBSUB_EMULATOR_HOST the client cannot make it.
run_python_published() {
  printf '{"type": "authorized_user", "client_id": "x", "client_secret": "x", "refresh_token": "x"}' \
    >"$folder/credentials.json"
  cd "$folder/python-published/tests" || return
  PYTHONPATH=$here/python GOOGLE_CLOUD_PROJECT=test \
    GOOGLE_APPLICATION_CREDENTIALS=$folder/credentials.json \
    timeout 300 "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider -p published -n 6 \
    -k 'not rest' system.py
}

# ---------------------------------------------------------------- Go

# The integration tests of the client are in its package, but those of ordering name an address of the
# service, before which PUBSUB_EMULATOR_HOST counts for nothing.
prepare_go_published() {
  local copy=$folder/go-published source
  [ "$(cat "$copy/version" 2>/dev/null)" = "$pubsub_go" ] && return
  source=$(cd "$here/go" && go list -m -f '{{.Dir}}' cloud.google.com/go/pubsub/v2) || return
  rm -rf "$copy"
  cp -r "$source" "$copy" && chmod -R u+w "$copy" || return
  sed -i 's/, option.WithEndpoint("us-west1-pubsub.googleapis.com:443")//' "$copy/integration_test.go"
  (cd "$copy" && go test -c -o published.test .) || return
  printf '%s\n' "$pubsub_go" >"$copy/version"
}

run_go() {
  command -v go >/dev/null || { skip go "there is no go"; return; }
  local log=$folder/go.log status=0
  (cd "$here/go" && retry "$log" go mod download) ||
    { skip go "its packages could not be fetched: $(reason "$log")"; return; }
  retry "$log" prepare_go_published ||
    { skip go "the published tests could not be built: $(reason "$log")"; return; }
  (cd "$here/go" && ORDO_PUBLISHED_TESTS=$folder/go-published go test -count 1 -v -timeout 5m .) \
    >"$log" 2>&1 || status=$?
  local published='^ +--- [A-Z]+: TestPublished/group/'
  close go $status "$(grep '^--- PASS' "$log" | grep -vc TestPublished)" "$(grep -c '^--- FAIL' "$log")" \
    "$(grep -c '^--- SKIP' "$log")" "$log"
  close "go, published tests" $status "$(grep -E "$published" "$log" | grep -c PASS)" \
    "$(grep -E "$published" "$log" | grep -c FAIL)" "$(grep -E "$published" "$log" | grep -c SKIP)" "$log"
}

# ---------------------------------------------------------------- Java

maven() { mvn -B -ntp -f "$here/java/pom.xml" -Dordo.target="$folder/java" "$@"; }

# Everything that `mvn test` takes, so that it can then be run without a network.
prepare_java() {
  local wanted
  wanted=$(sha256sum <"$here/java/pom.xml")
  [ "$(cat "$folder/java.wanted" 2>/dev/null)" = "$wanted" ] && return
  retry "$folder/java.log" maven -Dtest=NoSuchTest -Dsurefire.failIfNoSpecifiedTests=false test || return
  printf '%s\n' "$wanted" >"$folder/java.wanted"
}

run_java() {
  command -v javac >/dev/null || { skip java "there is no javac"; return; }
  command -v mvn >/dev/null || { skip java "there is no mvn"; return; }
  local log=$folder/java.log status=0 totals run failed errors skipped
  if ! prepare_java && ! grep -q 'COMPILATION ERROR' "$log"; then
    skip java "its packages could not be fetched: $(grep -m1 'ERROR' "$log" | cut -c 1-200)"
    return
  fi
  maven -o test >"$log" 2>&1 || status=$?
  totals=$(grep -E 'Tests run: .*Skipped: [0-9]+$' "$log" | tail -n 1 | tr -dc '0-9,')
  IFS=, read -r run failed errors skipped <<<"${totals:-0,0,0,0}"
  close java $status $((run - failed - errors - skipped)) $((failed + errors)) "$skipped" "$log"
}

# ---------------------------------------------------------------- all

for language in "${languages[@]}"; do
  start=$SECONDS
  "run_$language"
  printf '==> %s took %d s\n' "$language" $((SECONDS - start))
done
printf '\nOfficial clients:\n'
printf '  %s\n' "${summary[@]}"
[ $failures = 0 ]
