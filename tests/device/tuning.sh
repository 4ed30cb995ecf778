#!/bin/bash
# What the sweep, the tuning chapter and nclua tune do on a machine with two GPUs, in under
# four minutes: one table last. A step that fails or hangs does not stop the rest. Runs and
# logs go to $OUT (default: build/device-tuning).
#
#   tests/device/tuning.sh           on GPUs
#   tests/device/tuning.sh --stub    tries the script through tests/stub/, without a GPU
set -u
cd "$(dirname "$0")/../.." || exit 2
export OUT=${OUT:-$PWD/build/device-tuning}
export NCLUA=${NCLUA:-$PWD/build/nclua}
rm -rf "$OUT/logs"
mkdir -p "$OUT"
: >"$OUT/steps.tsv"

export NCCL_NVLS_ENABLE=0 NCLUA_BACKEND=cuda
unset NCCL_DEBUG
sweep=(--cycles 5 --iterations 20) chapter=(--cycles 3) tune=(--smallest 4K --largest 256M)
sizes=29 limit_s=60 stub=
if [ "${1:-}" = --stub ]; then
  export NCLUA_CUDA_LIB=$PWD/build/tests/stub/libcuda.so.1 NCLUA_CUDA_DEVICES=2
  export NCLUA_NCCL_LIB=$PWD/build/tests/stub/libnccl.so.2 NCLUA_CPU_DEVICES=2
  export XDG_CACHE_HOME=$PWD/build/tests/stub/cache
  small=(--smallest 4K --largest 32K --iterations 2)
  sweep=(--cycles 5 "${small[@]}") chapter=(--cycles 2 "${small[@]}") tune=("${small[@]}")
  sizes=4 stub=yes
fi

# step NAME SECONDS COMMAND...: runs it with a limit; output goes to OUT/NAME.log.
step() {
  local name=$1 limit=$2 begin end rc
  shift 2
  begin=$(date +%s%N)
  timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.log" 2>&1 </dev/null
  rc=$?
  end=$(date +%s%N)
  printf '%s\t%d\t%d.%03d\n' "$name" "$rc" $(((end - begin) / 1000000000)) \
    $(((end - begin) / 1000000 % 1000)) | tee -a "$OUT/steps.tsv"
  [ $rc = 0 ] || tail -n 15 "$OUT/$name.log" | sed 's/^/    /'
}

# run NAME SECONDS CHAPTER OPTIONS...: a chapter into OUT/logs.
run() {
  local name=$1 limit=$2
  shift 2
  step "$name" "$limit" "$NCLUA" "$@" --root "$OUT" --run-id "$name" --ranks 2 --timeout 30
}

run sweep 80 scripts/protocol.lua --algorithms Tree,Ring "${sweep[@]}"
swept=$OUT/logs/ch14_protocol/sweep
run chapter 70 scripts/tuning.lua --sweep "$swept" "${chapter[@]}"
chapter_dir=$OUT/logs/ch16_tuning/chapter
refused() { ! "$@"; }
export -f refused
# shellcheck disable=SC2016
step ignored 40 bash -c 'refused "$@"' refused "$NCLUA" scripts/tuning.lua --root "$OUT" \
  --run-id ignored --ranks 2 --timeout 30 --sections plugin,witness --override NVLS/Simple \
  --plugin-cycles 2 --skip-nsys "${chapter[@]}"
run tune 100 tune --algorithms Tree,Ring --cycles 7 --proof-cycles 7 \
  --mix 8K:160,64K:160,1M:160 "${tune[@]}"
tuned=$OUT/logs/tune/tune

bench=build/tests/bench/bench_tuner
if ! "$bench" 2>&1 | grep -q usage; then
  step build_bench 60 gcc -O2 -I. tests/bench/bench_tuner.c -o "$OUT/bench_tuner" -ldl
  bench=$OUT/bench_tuner
fi
plugin=$("$NCLUA" -e 'print(require("nclua.plugins").file("tuner"))')
step plugin_cost 30 "$bench" "$plugin" 200000

# part FILE TITLE: a part of a summary.md, up to the next one.
part() { sed -n "/^## $2/,/^## /p" "$1" 2>/dev/null | sed '$d'; }

failed=0
# check TEXT COMMAND...: a line of the table.
check() {
  local text=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "| $text | ok |"; else
    echo "| $text | **NO** |"
    failed=1
  fi
}
seconds() { awk -F'\t' -v n="$1" '$1 == n { print $3 }' "$OUT/steps.tsv"; }
is_below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 < b) }'; }
has_rows() { [ "$(tail -n +2 "$1" | grep -c "$3")" = "$2" ]; }
cost() { awk '$1 == "observing" { print $2 }' "$OUT/plugin_cost.log"; }

[ -z "$stub" ] || echo "no GPU: neither its graph lines nor its kernels are checked"
{
  part "$swept/summary.md" "Who wins where" | sed -n '/^```/,/^```/p'
  part "$chapter_dir/summary.md" "Model table"
  part "$chapter_dir/summary.md" "Auto-selection regret" | grep '^-'
  part "$chapter_dir/summary.md" "Plugin override"
  part "$chapter_dir/summary.md" "Did the override"
  part "$tuned/summary.md" "Gain by size"
  part "$tuned/summary.md" "The mix"
  sed 's/^/    /' "$OUT/plugin_cost.log"
  printf '\n| what | |\n|---|---|\n'
  check "sweep of $sizes sizes, 6 combinations and auto: $(seconds sweep) s, under $limit_s" \
    is_below "$(seconds sweep)" $limit_s
  check "all 6 combinations at every size" has_rows "$swept/summary.csv" $((sizes * 6)) \
    '^[0-9]*,\(Tree\|Ring\),.*,0,available,'
  [ -n "$stub" ] || check "the model follows from the table, the costs and the graph lines" \
    grep -q "selections follow from the printed table" "$chapter_dir/summary.md"
  check "the override took effect" grep -q 'took effect\*\*' "$chapter_dir/summary.md"
  [ -n "$stub" ] || check "gridX is 2" grep -q 'gridX 2 | yes' "$chapter_dir/summary.md"
  check "an override that is not there is called ignored" \
    grep -q "not available to this communicator" "$OUT/ignored.log"
  check "tune has its report" test -s "$tuned/summary.md"
  check "the observer costs $(cost) ns a call, under 500" is_below "$(cost)" 500
  printf '\n| step | status | seconds |\n|---|---:|---:|\n'
  awk -F'\t' '{ printf "| %s | %s | %s |\n", $1, $2, $3 }' "$OUT/steps.tsv"
} | tee "$OUT/table.md"
grep -q '\*\*NO\*\*' "$OUT/table.md" && failed=1
exit $failed
