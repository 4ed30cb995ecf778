#!/bin/bash
# The tracer on a machine with two GPUs or more: programs that know nothing of nclua, the
# tuner's channels by SQL, NCCL's own events, what tracing costs. Needs build/nclua, which
# carries the plugins, gcc and this tree; PyTorch if there is one. A step that fails or hangs
# does not stop the rest; one table comes last. Logs and traces go to $OUT.
#
#   tests/device/trace.sh [--cpu]    --cpu tries the script itself, without a GPU
set -u
cd "$(dirname "$0")/../.." || exit 2
export OUT=${OUT:-$PWD/build/device-trace} NCCL_NVLS_ENABLE=0
nclua=${NCLUA:-$PWD/build/nclua}
results=$OUT/results.tsv
mkdir -p "$OUT"
: >"$results"
unset NCCL_DEBUG NCLUA_TRACE_FILE NCLUA_TRACE_KINDS CUDA_INJECTION64_PATH
cpu=
[ "${1:-}" = --cpu ] && cpu=yes
export NCLUA_BACKEND=${cpu:+cpu} NCLUA_CPU_DEVICES=2
[ -n "$cpu" ] || export NCLUA_BACKEND=cuda

# note NAME RESULT DETAIL: a row of the table.
note() {
  printf '%s\t%s\t%s\n' "$1" "$2" "$3" | tee -a "$results"
}

# step NAME SECONDS COMMAND...: output goes to OUT/NAME.log; a failure is a row.
step() {
  local name=$1 limit=$2 rc
  shift 2
  timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.log" 2>&1 </dev/null
  rc=$?
  [ $rc = 0 ] && return 0
  note "$name" FAIL "exit status $rc"
  tail -n 15 "$OUT/$name.log" | sed 's/^/    /'
  return 1
}

# ask FILES SQL: the answer's first line after the heading; FILES are joined.
ask() {
  local files=$1 sql=$2 first rest
  first=${files%% *}
  rest=$(printf '%s' "${files#"$first"}" | xargs | tr ' ' ,)
  timeout 30 "$nclua" sql --csv ${rest:+--with "$rest"} "$first" "$sql" 2>&1 | sed -n 2p
}

# check NAME FILES SQL PATTERN: the answer must match the whole pattern.
check() {
  local answer
  answer=$(ask "$2" "$3")
  if [[ $answer =~ ^$4$ ]]; then note "$1" ok "$answer"; else note "$1" FAIL "got '$answer'"; fi
}

# The files that a step left, NAME.PID.sqlite.
files_of() { find "$OUT" -maxdepth 1 -name "$1.[0-9]*.sqlite" | sort | tr '\n' ' '; }

plugin=$("$nclua" -e 'print((assert(require("nclua.trace").plugin())))') || exit 1
tuner=$("$nclua" -e 'print((assert(require("nclua.plugins").file("tuner"))))') || exit 1
# What makes any program write a trace; NCLUA_TRACE_FILE says where.
tracing=(env CUDA_INJECTION64_PATH="$plugin" NVTX_INJECTION64_PATH="$plugin")
rm -f "$OUT"/*.sqlite*

kernels="select count(*), min(grid) > 0 and min(block) > 0 from kernels"
collectives="$kernels where name glob 'nccl*'"

# A program in C over the CUDA runtime and NCCL.
raw=$OUT/trace_nccl
build_raw() {
  local cuda nccl lib
  cuda=$(find /usr/local/cuda/include /usr/local/cuda-*/include -maxdepth 0 2>/dev/null |
    head -1)
  nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null)
  lib=$(find /usr/local/cuda*/lib64/libnccl.so.2 /usr/lib/*-linux-gnu/libnccl.so.2 \
    /usr/local/cuda*/targets/*/lib/libnccl.so.2 ${nccl:+"$nccl/lib/libnccl.so.2"} \
    -maxdepth 0 2>/dev/null | head -1)
  if [ -z "$cuda" ] || [ -z "$lib" ]; then
    echo "no CUDA headers or no NCCL"
    return 1
  fi
  gcc -O2 tests/device/trace_nccl.c -o "$raw" -I"$cuda" ${nccl:+-I"$nccl/include"} \
    "$lib" -L"${cuda%/include}/lib64" -lcudart \
    -Wl,-rpath,"${cuda%/include}/lib64" -Wl,-rpath,"$(dirname "$lib")" && ls -l "$raw"
}
export -f build_raw
export raw

on_gpus() {
  local forced
  if step raw-build 60 bash -c build_raw && step raw 60 "${tracing[@]}" \
    NCLUA_TRACE_FILE="$OUT/raw.%p.sqlite" "$raw" 67108864 20; then
    check raw-kernels "$(files_of raw)" "$collectives" '4[0-9],1'
    check raw-gpus "$(files_of raw)" "select count(distinct device), count(distinct uuid)
      from kernels, TARGET_INFO_GPU" '2,2'
    check raw-calls "$(files_of raw)" "select count(distinct k.correlation) from calls c
      join kernels k on k.correlation = c.correlation where k.name glob 'nccl*'
      and c.start < k.start" '4[0-9]'
    check raw-copies "$(files_of raw)" "select count(*), min(bytes) from fills
      where bytes = 67108864" '2,67108864'
  fi

  # Tree, Simple, two channels, for every call; and NCCL's own events in the same file.
  if step forced 60 "${tracing[@]}" NCLUA_TRACE_FILE="$OUT/forced.%p.sqlite" \
    NCCL_TUNER_PLUGIN="$tuner" \
    NCLUA_TUNER_FORCE=all_reduce:Tree/Simple/2 NCCL_PROFILER_PLUGIN="$plugin" \
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING "$raw" 67108864 20; then
    forced=$(files_of forced)
    check forced-gridX "$forced" "select distinct gridX, count(*) from
      CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName
      where value glob 'ncclDevKernel_AllReduce*'" '2,4[0-9]'
    check nccl-coll "$forced" "select function, algorithm, protocol, channels, count(*)
      from NCCL_COLL group by 1, 2, 3, 4" '"?AllReduce"?,TREE,SIMPLE,2,4[0-9]'
    check nccl-channels "$forced" "select count(distinct channel), count(*),
      min(gpuEnd > gpuStart) from NCCL_KERNEL_CHANNEL" '2,[0-9]+,1'
    check nccl-launches "$forced" "select count(*) >= 20 from NCCL_KERNEL_LAUNCH" '1'
    check nccl-to-kernel "$forced" "select count(distinct correlationId) >= 20, min(gridX),
      min(kernelStart > launchStart) from NCCL_COLL_KERNELS" '1,2,1'
    check nothing-lost "$forced" "select count(*) from NCLUA_LOST" '0'
  fi

  # Killed in the middle: what was flushed is there.
  timeout -s KILL 8 "${tracing[@]}" NCLUA_TRACE_FILE="$OUT/killed.%p.sqlite" \
    "$raw" 67108864 1000000 >"$OUT/killed.log" 2>&1
  check killed "$(files_of killed)" \
    "select count(*) > 100 from kernels where name glob 'nccl*'" '1'

  # One question, by nsys or by us.
  cat >"$OUT/profile.lua" <<'LUA'
local profile = require("nclua.profile")
local result = assert(profile.run({ arg[1], "1048576", "5" }, { file = arg[2] }))
assert(#assert(profile.kernels(arg[2], "nccl*")) > 0)
print(result.tool, #result.kernels .. " kernels", result.nsys_message)
LUA
  if step profile 60 "$nclua" "$OUT/profile.lua" "$raw" "$OUT/profile.sqlite"; then
    note profile ok "$(head -1 "$OUT/profile.log" | tr '\t' ' ' | cut -c1-60)"
  fi

  if python3 -c 'import torch' 2>/dev/null; then torch_program; else
    note torch skip 'python3 has no torch'
  fi
}

torch_program() {
  cat >"$OUT/program.py" <<'PY'
import os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
x = torch.ones(1024, 1024, device="cuda", dtype=torch.bfloat16)
for step in range(5):
    torch.cuda.nvtx.range_push(f"step {step}")
    y = x @ x
    dist.all_reduce(y)
    torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
print(rank, y.float().mean().item())
dist.destroy_process_group()
PY
  step torch 100 "${tracing[@]}" NCLUA_TRACE_FILE="$OUT/torch.%p.sqlite" \
    python3 -m torch.distributed.run --standalone --nproc-per-node 2 "$OUT/program.py" || return
  # The launcher itself may have a file, without kernels.
  local files
  files=$(files_of torch)
  check torch-nccl "$files" "$collectives" '1[0-9],1'
  check torch-others "$files" "select count(distinct name) > 0, min(grid * block) > 0
    from kernels where name not glob 'nccl*'" '1,1'
  check torch-ranks "$files" "select count(distinct process) from kernels" '2'
  check torch-ranges "$files" "select count(*) from ranges where name glob 'step*'" '10'
  # shellcheck disable=SC2086
  step torch-timeline 60 "$nclua" timeline $files
  # shellcheck disable=SC2086
  step torch-html 60 "$nclua" timeline --html "$OUT/torch.html" $files
}

# nclua itself: its ranks are one file, whichever backend.
cat >"$OUT/script.lua" <<'LUA'
local ranks = require("nclua.ranks")
assert(ranks.run({ n = 2, timeout_s = 60, fn = function(rank)
  local cuda = require("nclua.cuda")
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda.stream())
  local x <close> = assert(cuda.buffer("f32", 1 << 20)):fill(1)
  cuda.synchronize()
  cuda.range("loop", function()
    for _ = 1, 10 do comm:all_reduce(x, x, "sum", stream) end
    stream:sync()
  end)
end }))
LUA
if step script 60 "$nclua" --trace "$OUT/script.sqlite" "$OUT/script.lua"; then
  check script-kernels "$OUT/script.sqlite" "$collectives" '2[0-9],1'
  check script-ranges "$OUT/script.sqlite" \
    "select count(*), count(distinct process) from ranges where name = 'loop'" '2,2'
  check script-skew "$OUT/script.sqlite" "with n as (select process, start, row_number() over
    (partition by process order by start) as nth from kernels where name glob 'nccl*'),
    d as (select max(start) - min(start) as ns from n group by nth)
    select median(ns) < 1e9 from d" '1'
  step script-timeline 60 "$nclua" timeline --html "$OUT/script.html" "$OUT/script.sqlite"
fi

[ -n "$cpu" ] || on_gpus

# What tracing costs, in one process, in turns; the kinds that are recorded differ.
pair() {
  local name=$1 kinds=$2 blocks=8 cycles=10
  [ -z "$cpu" ] || blocks=2 cycles=1
  NCLUA_TRACE_KINDS=$kinds step "cost-$name" 60 \
    "$nclua" tests/device/trace_pair.lua $blocks $cycles || return
  while IFS=, read -r case bytes without with percent; do
    local verdict=ok
    [ "$case" != case ] || continue
    [ -n "$cpu" ] || [ "$(printf '%s\n2\n' "$percent" | sort -g | head -1)" = "$percent" ] ||
      verdict=SLOW
    note "cost-$name" $verdict "$case $bytes B: $without -> $with us ($percent %)"
  done <"$OUT/cost-$name.log"
}
pair all ""
pair launch kernel,memcpy,memset,launch
pair kernels kernel,memcpy,memset

rm -f "$OUT"/pair-*.sqlite*
echo
echo "== trace ($(uname -n), $(date -u +%F))"
cat "$results"
! grep -q FAIL "$results"
