#!/bin/bash
# nclua perf against nccl-tests' all_reduce_perf, in turns, 4 B to 1 GiB on 2 GPUs; the table
# comes last. The program is built from public source by whoever runs this, with the same
# NCCL: tests/device/perf.sh PATH/all_reduce_perf (or ALL_REDUCE_PERF=PATH). Results: $OUT.
#
#   tests/device/perf.sh --stub    tries the script, without a GPU and without nccl-tests
set -u
cd "$(dirname "$0")/../.." || exit 2
export OUT=${OUT:-$PWD/build/device-perf}
export NCLUA=${NCLUA:-$PWD/build/nclua}
program=${1:-${ALL_REDUCE_PERF:-}} rounds=${ROUNDS:-7} sizes=(-b 4 -e 1G -f 2) limit=60
rm -rf "$OUT" && mkdir -p "$OUT" || exit 2
unset NCCL_DEBUG

if [ "$program" = --stub ]; then
  export NCLUA_BACKEND=cpu
  rounds=2 sizes=(-b 4 -e 64K -f 16 -n 5)
  program=$OUT/all_reduce_perf
  printf '#!/bin/sh\nexec "%s" perf --layout nccl-tests --root "%s/other" --run-id $$ "$@"\n' \
    "$NCLUA" "$OUT" >"$program"
  chmod +x "$program"
elif [ ! -x "$program" ]; then
  echo "skipped: no all_reduce_perf (give its path; built from public nccl-tests)"
  exit 0
else
  export NCLUA_BACKEND=cuda NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
  library=$(ldd "$program" | sed -n 's/.*libnccl.so.2 => \([^ ]*\).*/\1/p')
  [ -n "$library" ] && export NCLUA_NCCL_LIB=${NCLUA_NCCL_LIB:-$library}
  echo "NCCL of both: ${NCLUA_NCCL_LIB:-as found}" | tee "$OUT/library.txt"
fi

# try NAME COMMAND...: output to OUT/NAME.txt, with a limit.
try() {
  local name=$1
  shift
  timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.txt" 2>"$OUT/$name.err" </dev/null && return
  echo "$name failed ($?)"
  tail -n 5 "$OUT/$name.err" "$OUT/$name.txt"
}

ours() {
  try "nclua-$1" "$NCLUA" scripts/perf.lua "${sizes[@]}" -g 2 --layout nccl-tests \
    --root "$OUT/runs" --run-id "$1"
}
process() { try "process-$1" "$program" "${sizes[@]}" -g 2; }     # one process drives both
threads() { try "threads-$1" "$program" "${sizes[@]}" -t 2 -g 1; } # a thread a GPU

# Each comes first, second and last equally often: a GPU warms up, a machine drifts.
orders=("ours process threads" "threads ours process" "process threads ours")
for ((round = 1; round <= rounds; round++)); do
  for one in ${orders[round % 3]}; do "$one" "$round"; done
done
"$NCLUA" tests/device/perf_table.lua "$OUT" "$([ "${1:-}" = --stub ] && echo --stub)" \
  | tee "$OUT/table.md"
exit "${PIPESTATUS[0]}"
