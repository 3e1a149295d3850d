#!/bin/sh
# Checks the Spin models of the lock-free pieces: the right ones must hold, the faulty ones must be
# refuted. Exit status: 0 all as expected, 1 not, 77 skipped because a tool is missing.
set -u
models=$(cd "$(dirname "$0")" && pwd)
for tool in spin gcc; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "SKIPPED: $tool is not installed, so the models were NOT checked (apt install spin gcc)"
    exit 77
  fi
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
count=0

# check <holds|refuted> <model> [-DFAULT ...]
check() {
  expected=$1
  model=$2
  shift 2
  count=$((count + 1))
  cd "$work" || exit 1
  rm -f pan* ./*.trail
  # Only the big ones take longer to run than to optimise.
  case "$model $*" in
    *NO_POPPER*) optimise=-O0 ;;
    line.pml*) optimise=-O1 ;;
    *) optimise=-O0 ;;
  esac
  if ! spin "$@" -a "$models/$model" >spin.log 2>&1 ||
     ! gcc $optimise -w -DSAFETY -DMEMLIM=1024 -o pan pan.c >gcc.log 2>&1; then
    echo "FAILED    $model $*: does not compile"
    cat spin.log gcc.log 2>/dev/null
    failures=$((failures + 1))
    return
  fi
  timeout 300 ./pan -m200000 >pan.log 2>&1
  states=$(awk '/states, stored/ {print $1; exit}' pan.log)
  if grep -q 'error: max search depth\|out of memory\|aborted' pan.log; then
    found="search incomplete"
  elif grep -q 'errors: 0' pan.log; then
    found="holds"
  elif grep -q 'errors: [1-9]' pan.log; then
    found="refuted"
  else
    found="not run"
  fi
  if [ "$found" = "$expected" ]; then
    printf 'ok        %-12s %-44s %s (%s states)\n' "$model" "$*" "$found" "$states"
  else
    printf 'FAILED    %-12s %-44s expected: %s, but: %s\n' "$model" "$*" "$expected" "$found"
    cat pan.log
    failures=$((failures + 1))
  fi
}

check holds ring.pml
check holds ring.pml -DITEMS=3 -DCAPACITY=1
check holds ring.pml -DPRODUCERS=3 -DITEMS=1
check refuted ring.pml -DPUBLISH_FIRST
check refuted ring.pml -DNO_CAPACITY
check refuted ring.pml -DNO_SWAP
check refuted ring.pml -DTRUST_HEAD
check refuted ring.pml -DRELEASE_FIRST

check holds park.pml -DNOTIFIERS=1
check holds park.pml -DNOTIFIERS=2
check refuted park.pml -DNOTIFIERS=1 -DNO_HEAVY_FENCE
check refuted park.pml -DNOTIFIERS=1 -DNO_SECOND_LOOK
check refuted park.pml -DNOTIFIERS=2 -DTICKET_LATE
check refuted park.pml -DNOTIFIERS=1 -DWAKE_FIRST

check holds handover.pml -DWAITERS=2
check holds handover.pml -DWAITERS=3
check refuted handover.pml -DWAITERS=3 -DTICKET_LATE
check refuted handover.pml -DWAITERS=2 -DNO_WAKE
check refuted handover.pml -DWAITERS=3 -DUNDERCOUNT

check holds line.pml
check holds line.pml -DITEMS=4 -DNO_POPPER
check holds line.pml -DITEMS=3 -DWORKERS=1
check refuted line.pml -DITEMS=3 -DNO_POPPER -DNO_RMW
check refuted line.pml -DITEMS=3 -DNO_POPPER -DNO_LOOK
check refuted line.pml -DITEMS=3 -DNO_POPPER -DNO_HEAVY_FENCE
check refuted line.pml -DITEMS=3 -DNO_POPPER -DNO_BEGIN_LOOK
check refuted line.pml -DITEMS=3 -DNO_POPPER -DWAKING_EARLY
check refuted line.pml -DITEMS=3 -DNO_POPPER -DNO_WATCH_FENCE
check refuted line.pml -DNO_PASS
check refuted line.pml -DNO_LOOK_BEHIND
check refuted line.pml -DSLEEP_BLINDLY
check refuted line.pml -DLOOK_BLINDLY

check holds bus.pml
check refuted bus.pml -DSLEEP_BLINDLY
check refuted bus.pml -DNO_OWED
check refuted bus.pml -DMARK_LATE

echo "$count models checked, $failures not as expected"
[ "$failures" -eq 0 ]
