#!/bin/sh
# Builds the broker's core once for each planted bug (ordo/broker/planted_bugs.h) into the simulator
# and runs seeds until it complains. Fails if a bug is not found. A long run: minutes.
#
#   tests/simulation/planted_bugs.sh [FOLDER FOR OBJECTS] [SEEDS] [FIRST BUG] [LAST BUG]
#
# Prints a line for each bug: its number, the seeds it took, what the simulator said.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build/planted_bugs}
seeds=${2:-20000}
first=${3:-1}
last=${4:-30}
compiler=${CXX:-g++}
command -v ccache > /dev/null && compiler="ccache $compiler"
mkdir -p "$out"
cd "$root"

core=$(ls ordo/broker/partition*.cc ordo/broker/subscription*.cc ordo/core/*.cc ordo/broker/lane*.cc \
  | grep -v -e _test.cc -e _bench.cc)
parts="acked_intervals consumers credit_desk cursor_journal cursor_rows filter hot_keys message_cache
  message_codec push_endpoint store_memory"
for part in $parts; do core="$core ordo/broker/$part.cc"; done
sources="$core $(ls tests/simulation/*.cc)"

compile() {  # source, object, more options
  $compiler -std=c++20 -O1 -I. $3 -c "$1" -o "$2"
}
object() { echo "$out/$(echo "$1" | tr / _).o"; }

objects=""
for source in $sources; do
  objects="$objects $(object "$source")"
  compile "$source" "$(object "$source")" ""
done

missed=0
for bug in $(seq "$first" "$last"); do
  changed=$(grep -l "ORDO_BUG($bug)" $core || true)
  if [ -z "$changed" ]; then
    echo "$bug: not planted anywhere"
    missed=$((missed + 1))
    continue
  fi
  linked=$objects
  for source in $changed; do
    compile "$source" "$(object "$source").bug" "-DORDO_PLANTED_BUG=$bug"
    linked=$(echo "$linked" | sed "s#$(object "$source")\b#$(object "$source").bug#")
  done
  $compiler $linked -o "$out/simulator_$bug" -lpthread
  said=$(timeout 600 "$out/simulator_$bug" --first 1 --count "$seeds" --no-marks 2>&1 | head -n 1) || true
  case $said in
    *"no promise broken"* | "")
      echo "$bug: NOT FOUND in $seeds seeds"
      missed=$((missed + 1))
      ;;
    *) echo "$bug: $said" ;;
  esac
  rm -f "$out/simulator_$bug" "$out"/*.bug
done
[ "$missed" -eq 0 ] || { echo "$missed planted bugs were not found"; exit 1; }
echo "every planted bug was found"
