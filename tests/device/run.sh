#!/bin/bash
# Everything that issue 3 wants to see on a machine with GPUs; a step that fails or hangs does
# not stop the rest. Logs, CSV and runs go to $OUT (default: build/device-results).
#
#   tests/device/run.sh           on GPUs
#   tests/device/run.sh --stub    tries the script through tests/stub/, without a GPU
set -u
cd "$(dirname "$0")/../.." || exit 2
export OUT=${OUT:-$PWD/build/device-results}
export NCLUA=${NCLUA:-$PWD/build/nclua}
build=$(dirname "$NCLUA")
tools=$build/tests/device
mkdir -p "$OUT"
: >"$OUT/steps.tsv"

export NCCL_NVLS_ENABLE=0 NCLUA_BACKEND=cuda LUA_PATH="$tools/?.lua;;"
unset NCCL_DEBUG
cycles=60 rounds=3 starts=5 chapter=(--backend cuda --cycles 10) stub=
if [ "${1:-}" = --stub ]; then
  export NCLUA_CUDA_LIB=$build/tests/stub/libcuda.so.1 NCLUA_CUDA_DEVICES=2
  export NCLUA_NCCL_LIB=$build/tests/stub/libnccl.so.2 NCLUA_CPU_DEVICES=2
  export XDG_CACHE_HOME=$build/tests/stub/cache
  cycles=2 rounds=1 starts=2 stub=yes
  chapter=(--backend cuda --cycles 1 --largest 64K --fragment-total 1M --decode-collectives 8)
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

# keep NAME SECONDS COMMAND...: the same, with standard output in OUT/NAME.csv.
keep() {
  local name=$1 limit=$2
  shift 2
  # shellcheck disable=SC2016
  step "$name" "$limit" bash -c 'exec "${@:2}" >"$1"' keep "$OUT/$name.csv" "$@"
}

# Every NCCL of this machine, each file once.
nccls() {
  [ -n "${NCLUA_NCCL_LIB:-}" ] && { echo "$NCLUA_NCCL_LIB"; return; }
  # PyTorch brings its own.
  local wheel='import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")'
  for file in /usr/lib/*-linux-gnu/libnccl.so.2 /usr/local/cuda*/lib*/libnccl.so.2 \
    /usr/local/cuda*/targets/*/lib/libnccl.so.2 "$(python3 -c "$wheel" 2>/dev/null)"; do
    [ -e "$file" ] && readlink -f "$file"
  done | sort -u
}

floor=$tools/floor
if ! "$floor" --ranks 0 2>&1 | grep -q usage; then
  step build_floor 60 gcc -O2 -I. tests/device/floor.c -o "$OUT/floor" -ldl -lpthread
  floor=$OUT/floor
fi

step machine 30 bash -c 'nvidia-smi; nvidia-smi topo -m; lscpu | head -20; uname -a'
step doctor 60 "$NCLUA" doctor
for test in cuda cuda_stream cuda_handles cuda_kernel nccl nccl_arguments nccl_handles; do
  step "test_$test" 60 "$NCLUA" tests/run.lua "tests/bindings/test_$test.lua"
done

list=$(nccls)
for library in $list; do
  label=$(basename "$library")-$(echo "$library" | cksum | cut -c1-4)
  echo "$label is $library" | tee -a "$OUT/libraries.txt"
  NCLUA_NCCL_LIB=$library step "paired-$label" 60 \
    "$tools/paired" "$OUT/paired-$label.csv" "$cycles"
  step "decode-$label" 60 "$NCLUA" --nccl-lib "$library" scripts/interview.lua \
    "${chapter[@]}" --ranks 2 --sections decode --root "$OUT/decode-$label"
done

for ((i = 1; i <= rounds; i++)); do
  keep "floor-c-$i" 60 "$floor" --exec "$floor" --cycles 10
  keep "floor-lua-$i" 60 "$floor" --exec "$NCLUA" tests/device/floor.lua 10
done
for ((i = 1; i <= starts; i++)); do
  keep "floor-start-c-$i" 30 "$floor" --exec "$floor" --only start
  FLOOR_ONLY=start keep "floor-start-lua-$i" 30 \
    "$floor" --exec "$NCLUA" tests/device/floor.lua
done

interview() { step "$1" 90 "$NCLUA" scripts/interview.lua "${chapter[@]}" --root "$OUT/$1" "${@:2}"; }
interview interview
interview interview_2_ranks --ranks 2
interview oversubscribed_on_2 --ranks 4 --oversubscribe
CUDA_VISIBLE_DEVICES=0 NCLUA_CUDA_DEVICES=${stub:+1} \
  interview oversubscribed_on_1 --ranks 4 --oversubscribe
step ranks 90 "$NCLUA" tests/device/ranks.lua
# shellcheck disable=SC2016
[ -n "$stub" ] || step nothing_left 20 bash -c \
  'left=$(nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader) || exit 1
   echo "$left"; [ -z "$left" ]'

"$NCLUA" tests/device/table.lua "$OUT" ${stub:+--stub} | tee "$OUT/table.md"
exit "${PIPESTATUS[0]}"
