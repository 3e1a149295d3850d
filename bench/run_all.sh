#!/usr/bin/env bash
# Runs every benchmark and writes docs/benchmarks.md with its plots.
#
# usage: bench/run_all.sh [--quick] [BUILD_FOLDER]
#
# BUILD_FOLDER is a built Release tree, build/release unless said. --quick is a smoke run of a few
# minutes: its results and its report go to BUILD_FOLDER/bench-quick and not into the tree.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
quick=()
for argument in "$@"; do
  case $argument in
    --quick) quick=(--quick) ;;
    -*) echo "run_all.sh: unknown option $argument; there is --quick" >&2; exit 2 ;;
    *) build=$argument ;;
  esac
done

results=$root/bench/results
docs=$root/docs
if [ ${#quick[@]} -gt 0 ]; then
  results=$build/bench-quick/results
  docs=$build/bench-quick/docs
fi
mkdir -p "$results" "$docs"

for program in bench_pool bench_dispatcher bench_bus bench_gateway bench_broker ordo; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "run_all.sh: $build/bin/$program is missing; build first:" >&2
    echo "  cmake --preset release && cmake --build --preset release" >&2
    exit 1
  fi
done

# A part that fails does not keep the others from being measured; the status tells.
status=0
echo "== pool =="
"$build/bin/bench_pool" ${quick[@]+"${quick[@]}"} --out "$results/pool.json" || status=1
echo "== dispatcher =="
"$build/bin/bench_dispatcher" ${quick[@]+"${quick[@]}"} --out "$results/dispatcher.json" || status=1
echo "== bus =="
"$build/bin/bench_bus" ${quick[@]+"${quick[@]}"} --out "$results/bus.json" || status=1
echo "== gateway =="
"$build/bin/bench_gateway" ${quick[@]+"${quick[@]}"} --out "$results/gateway.json" || status=1
echo "== broker =="
"$build/bin/bench_broker" ${quick[@]+"${quick[@]}"} --dir "$build" \
  --out "$results/broker.json" || status=1
echo "== wire =="
"$root/bench/wire/bench_wire.py" --bin "$build/bin" --dir "$build" ${quick[@]+"${quick[@]}"} \
  --out "$results/wire.json" || status=1
echo "== rings =="
if [ -x "$build/bin/bench_rings" ]; then
  "$build/bin/bench_rings" ${quick[@]+"${quick[@]}"} --out "$results/rings.json" || status=1
else
  echo "run_all.sh: SKIPPED: bench_rings is not built: see bench/README.md for what it needs" >&2
fi
echo "== map =="
"$root/bench/map/bench_map.py" --ordo "$build/bin/ordo" ${quick[@]+"${quick[@]}"} \
  --out "$results/map.json" || status=1
echo "== kernel =="
"$root/bench/kernel.py" --bin "$build/bin" ${quick[@]+"${quick[@]}"} \
  --out "$results/kernel.json" || status=1
"$root/bench/report.py" --results "$results" --docs "$docs" || status=1
exit $status
