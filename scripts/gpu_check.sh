#!/usr/bin/env bash
# Shows on a machine with one GPU that training is right, and how fast it is. Needs no network and takes some
# minutes. Each stage has a time limit and ends as PASS, FAIL or SKIP; its measurements stand below its line.
#
#   scripts/gpu_check.sh NPZ REPORT.md       NPZ: raw TpuGraphs files with AlexNet of layout:xla:random and ResNet of
#                                            layout:xla:default (bench/against_pyg.py)
#
# The programs are those of build/release (TPUDIST_BUILD), or those on the PATH after `. BUNDLE/environment.sh`
# (scripts/gpu_bundle.sh). The peer needs a python3 (TPUDIST_PYTHON) with torch and torch_geometric.
# Exit code: 0 if no stage failed, otherwise 1.
#
# TPUDIST_CHECK_STAGES="bits kernels"  only these, by the names of their functions
# TPUDIST_CHECK_EMULATED=1             on the emulated device, with programs that end in _emulated, and short
# TPUDIST_CHECK_LIMIT=SECONDS          no stage takes longer
# TPUDIST_CHECK_HASHES=FILE            expected results of kernels
# TPUDIST_CHECK_PRECISIONS="fp32"      of the gradients
# TPUDIST_CHECK_SYSTEMS="gst harvard"  only these of experiments/systems
set -uo pipefail
(( $# == 2 )) || { sed -n '2,17p' "$0" >&2; exit 2; }
npz=$(realpath "$1") report=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${TPUDIST_BUILD:-build/release} python=${TPUDIST_PYTHON:-python3} emulated=${TPUDIST_CHECK_EMULATED:-}
hashes=${TPUDIST_CHECK_HASHES:-tests/gpu_check/kernel_hashes.txt} precisions=${TPUDIST_CHECK_PRECISIONS:-fp32 tf32 bf16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)  # it goes by these, too
export OMP_NUM_THREADS=1 TPUDIST_DATA=$work/shards NCCL_CHECK_POINTERS=1
steps=40 smaller=()
if [[ -n $emulated ]]; then
  steps=2 smaller=(batch.slates=1 ensemble.members=2 dist.threads=1 train.evaluate_rows=100 train.evaluate_every=0 train.last_evaluation=none)
fi
failed=0

program() { # its path, from the build folder or the PATH
  local found name=$1${emulated:+_emulated}
  found=$(find "$build" -name "$name" -type f -perm -u+x 2> /dev/null | head -n 1)
  [[ -n $found ]] || found=$(type -P "$name") || { echo "no program $name" >&2; return 1; }  # no function of that name
  echo "$found"
}

# stage NAME SECONDS FUNCTION: runs it with the limit, all stages together within ten minutes. The function's code:
# 0 PASS, 77 SKIP, else FAIL.
stage() {
  [[ " ${TPUDIST_CHECK_STAGES:-$3} " == *" $3 "* ]] || return 0
  local begin=$SECONDS code output=$work/stage.txt limit=$2 left=$((590 - SECONDS))
  (( limit <= ${TPUDIST_CHECK_LIMIT:-limit} )) || limit=$TPUDIST_CHECK_LIMIT
  (( limit <= left )) || limit=$(( left > 1 ? left : 1 ))
  export -f "$3" program
  timeout -k 5 "$limit" bash -c "set -euo pipefail; smaller=(${smaller[*]}); $3" > "$output" 2>&1
  code=$?
  local verdict=FAIL
  case $code in 0) verdict=PASS ;; 77) verdict=SKIP ;; 124 | 137) echo "stopped after $limit s" >> "$output" ;; esac
  [[ $verdict == FAIL ]] && failed=1
  printf '\n## %s: %s (%d s)\n\n```text\n%s\n```\n' "$verdict" "$1" $((SECONDS - begin)) "$(tail -n 120 "$output" | cut -c 1-160)" >> "$report"
  printf '%s  %s (%d s)\n' "$verdict" "$1" $((SECONDS - begin))
}
export build work npz python emulated hashes precisions steps cores

facts() {
  [[ -n $emulated ]] || nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader || { echo "no GPU"; exit 77; }
  lscpu | grep -E '^(Model name|CPU\(s\))'
  tpudist=$(program tpudist); "$tpudist" --version
}
need_gpu() { [[ -n $emulated ]] || nvidia-smi > /dev/null 2>&1 || { echo "no GPU"; exit 77; }; }
need_card() { [[ -z $emulated ]] || { echo "not on the emulated device"; exit 77; }; need_gpu; }
export -f need_gpu need_card

tests() { # every case of the programs that hold GPU tests; a case that is skipped there is a failure
  need_card
  local test path shard shards=${SHARDS:-1} count=0 code=0
  for test in $TESTS; do
    path=$(program "$test") || continue
    count=$((count + 1))
    for ((shard = 0; shard < shards; ++shard)); do
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$path" ${FILTER:+--gtest_filter="$FILTER"} --gtest_color=no \
        > "$work/$test-$shard.txt" 2>&1 || echo "[  FAILED  ] its process" >> "$work/$test-$shard.txt" &
    done
    wait
    echo "$test: $(cat "$work/$test"-*.txt | grep -c '^\[       OK' || true) passed"
    grep -hq '^\[       OK' "$work/$test"-*.txt || code=1
    if grep -hE -A 8 '^\[  (FAILED|SKIPPED)|: Failure$' "$work/$test"-*.txt > "$work/bad.txt"; then
      head -n 30 "$work/bad.txt"
      code=1
    fi
  done
  (( count > 0 )) || { echo "none of the programs $TESTS is here"; exit 77; }
  exit $code
}

kernels() { # what each kernel gives, to the bit where there is no exponential in it
  need_gpu
  check=$(program kernel_check); "$check" "$hashes"
}

data() {
  tpudist=$(program tpudist)
  "$tpudist" convert "$npz" "$work/shards" | tail -n 3
}

# alexnet NAME SETTINGS...: a training in a folder of that name; all it prints goes to NAME.txt. The last setting
# of a key holds.
alexnet() {
  local tpudist word; tpudist=$(program tpudist)
  local -A settings=()
  for word in dist.threads=8 train.steps=$steps ${smaller[@]+"${smaller[@]}"} "${@:2}"; do settings[${word%%=*}]=$word; done
  "$tpudist" train experiments/alexnet.yaml --run-dir "$work/run-$1" "${settings[@]}" \
    > "$work/$1.txt" 2>&1 || { cat "$work/$1.txt"; return 1; }
}
parameters() { grep '^parameters:' "$work/$1.txt" | cut -d ' ' -f 2; }
same_parameters() { # of all these runs
  local run
  for run in "$@"; do echo "$run: parameters $(parameters "$run")"; done
  [[ -n $(parameters "$1") ]] || exit 1
  for run in "$@"; do [[ $(parameters "$run") == "$(parameters "$1")" ]] || exit 1; done
}
device_check() { local check; check=$(program device_check); "$check" "$@"; }
export -f alexnet parameters same_parameters device_check

gradients() { # of the first step, in every precision
  need_gpu
  local code=0
  for precision in $precisions; do
    echo "$precision:"
    device_check gradients experiments/alexnet.yaml precision=$precision dist.threads=8 ${smaller[@]+"${smaller[@]}"} || code=1
  done
  exit $code
}

systems() { # of each published system the gradients of the first step, on small synthetic graphs of all collections
  need_gpu
  local tpudist check; tpudist=$(program tpudist) check=$(program device_check)
  "$tpudist" synth "$work/demo" --preset demo --graphs 3,1,0 --configs 100 --quiet > "$work/demo.txt" 2>&1
  "$tpudist" convert "$work/demo" "$work/demo-shards" --quiet >> "$work/demo.txt" 2>&1
  export check
  one() { # rounding can turn a ReLU or a maximum of a member's, so that this counts the median of five
    local settings=(batch.slates=2 "ensemble={members: 5, vary: [init]}" train.early_stop.patience=0)
    [[ $1 != fifth_place ]] || settings+=(batch.unit_slates=2) # its loss is of the batch
    { TPUDIST_DATA=$work/demo-shards timeout 60 "$check" gradients "experiments/systems/$1.yaml" "${settings[@]}" 2>&1 || { code=$?; (( code == 1 )) || echo "ended with code $code"; }; } | awk -v name="$1" '
      /\[warning\]/ {next}  # one step is too few for some schedules
      /^member/ {++n; low += $3 ~ /^[0-9]/ && $3 <= 1e-3; text = text " " $3}
      !/^member|^largest/ {bad = 1; text = text " " $0}
      END {print name ":" text (n == 5 && low >= 3 && !bad ? "" : "  TOO FAR")}'
  }
  export -f one
  # shellcheck disable=SC2086
  printf '%s\n' ${TPUDIST_CHECK_SYSTEMS:-$(basename -s .yaml experiments/systems/*.yaml)} | xargs -P "$(((cores + 1) / 2))" -I{} bash -c 'one {}' > "$work/systems.txt"
  sort "$work/systems.txt"
  ! grep -q 'TOO FAR' "$work/systems.txt"
}

like_the_cpu() { # scores after five steps: the order of additions differs, so bits do, and numbers hardly
  need_gpu
  for device in cpu cuda; do
    alexnet five-$device dist.device=$device train.steps=5 train.evaluate_every=5 train.last_evaluation=sampled train.evaluate_rows=1000 optimizer.lr=1e-3
    echo "$device: $(grep -E '^ *member [0-9]' "$work/five-$device.txt" | awk '{printf "%s ", $3}')"
  done
  paste <(grep -E '^ *member [0-9]' "$work/five-cpu.txt") <(grep -E '^ *member [0-9]' "$work/five-cuda.txt") \
    | awk '{d = $3 - $6; if (d < 0) d = -d; if (d > 0.0005) bad = 1} END {exit bad || NR == 0}'
}

bits() { # the same training twice, with each member in a call of its own, and with NCCL's all-reduce of one rank
  need_gpu
  alexnet first dist.device=cuda
  alexnet again dist.device=cuda
  alexnet nccl dist.device=cuda dist.reduce=nccl
  alexnet alone dist.device=cuda batch.member_chunk=1
  same_parameters first again nccl alone
}

members() { # each member has the same bits with any others, in any place of a call
  need_gpu
  device_check members experiments/alexnet.yaml ${smaller[@]+"${smaller[@]}"} dist.threads=8 ensemble.members=5 train.steps=$((steps / 2)) \
    train.evaluate_every=0 train.last_evaluation=none
}

ranks() { # eight ranks played by one device, with copies in NCCL's place
  need_gpu
  device_check ranks experiments/alexnet.yaml ${smaller[@]+"${smaller[@]}"} train.steps=$((steps / 2)) train.evaluate_every=$((steps / 2))
}

nccl() { # one rank; then a wrong call, which must end with NCCL's text
  need_gpu
  local check code=0; check=$(program nccl_check)
  "$check" "$work"
  "$check" "$work" 10 wrong > "$work/wrong.txt" 2>&1 || code=$?
  cat "$work/wrong.txt"; echo "exit code $code"
  (( code == 1 )) && grep -q 'ncclAllReduce failed: invalid argument' "$work/wrong.txt"
}

resume() { # a run that goes on from a checkpoint gives the bits of one that never stopped
  need_gpu
  alexnet whole dist.device=cuda train.checkpoint_every=$((steps / 2))
  cp -r "$work/run-whole" "$work/run-resumed"
  rm "$work/run-resumed/checkpoints/step-$(printf %09d "$steps").h5"
  alexnet resumed dist.device=cuda train.checkpoint_every=$((steps / 2)) --resume
  same_parameters whole resumed
}

score() { # the whole recipe
  need_gpu
  alexnet whole-recipe dist.device=cuda train.steps=250
  grep -E 'members together|training:|peak memory' "$work/whole-recipe.txt"
  grep -E '^ *members together' "$work/whole-recipe.txt" | awk '{exit !($3 >= 0.74)}'
}

sanitizer() {
  need_card
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null) || { echo "no compute-sanitizer"; exit 77; }
  layers=$(program models_layers_test) || { echo "no models_layers_test"; exit 77; }
  local shard code=0 shards=8 pids=()
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$tool" --tool memcheck --error-exitcode 9 "$layers" \
      --gtest_filter='*OnGpu*InDouble*:*OnGpu*InFloat*/sage*' --gtest_brief=1 > "$work/sanitizer-$shard.txt" 2>&1 &
    pids+=($!)
  done
  "$tool" --tool memcheck --error-exitcode 9 "$(program kernel_check)" "$hashes" > "$work/sanitizer-kernels.txt" 2>&1 || code=1
  for shard in "${pids[@]}"; do wait "$shard" || code=1; done
  grep -q '^\[  PASSED  \] [1-9]' "$work"/sanitizer-*.txt || code=1
  tail -q -n 3 "$work"/sanitizer-*.txt
  exit $code
}

bandwidth() { # of each kernel beside a copy's, of products, and what the host takes to ask for them
  need_card
  local check code=0; check=$(program kernel_check)
  device_check products || code=1
  device_check host
  "$check" --time || code=1
  exit $code
}

times() { # steps in milliseconds, with five members; the peer trains them one after the other
  need_gpu
  local code=0 bench; bench=$(program step_bench) || { echo "no step_bench"; exit 77; }
  if [[ -z $emulated ]]; then
    for preset in xla nlp; do
      tpudist=$(program tpudist)
      "$tpudist" synth "$work/$preset" --preset $preset --collections layout:$preset:random --graphs 1,0,0 --configs 400 | tail -n 1
      "$tpudist" convert "$work/$preset" "$work/$preset-shards" | tail -n 1
    done
  fi
  peer() { # its arguments -> milliseconds, or "-"
    [[ -z $emulated ]] || { echo -; return; }
    "$python" bench/pyg_peer.py "$@" --device cuda --threads 8 2> /dev/null | "$python" -c 'import json, sys; print(round(json.load(sys.stdin)["seconds_median"] * 1e3, 1))' 2> /dev/null || echo -
  }
  ours() { "$bench" "$@" --device 0 --threads "$cores" --prefetch 4 --steps 20 --seconds 6 | "$python" -c 'import json, sys
line = json.load(sys.stdin); print(line["seconds_median"] * 1e3, line.get("planning_seconds_median", 0) * 1e3)' || echo 0 0; }
  local holds=0 # an H200 is held to limits: what the slower of two hosts took, and half as much again
  if [[ -n $emulated ]] || nvidia-smi --query-gpu=name --format=csv,noheader | grep -q H200; then holds=1; fi
  echo "case                         tpudist ms   planning ms   PyTorch Geometric ms   ratio"
  row() { # NAME MEMBERS LIMIT_MS OURS PEER
    echo "$1 $2 $3 $4 $5" | awk -v holds=$holds '{
      ratio = $6 == "-" || $4 <= 0 ? 0 : $6 * $2 / $4
      slow = holds && $4 > $3 || $4 <= 0
      printf "%-28s %10.1f %13.1f %22s %7s%s\n", $1, $4, $5, $6, (ratio > 0 ? sprintf("%.1f", ratio) : "-"), (slow ? "  too slow" : "")
      exit slow}' || code=1
  }
  resnet="$npz/layout/xla/default/train/resnet_main_10904.npz" alexnet="$npz/layout/xla/random/train/alexnet_train_batch_32.npz"
  local xla_step=("$work/xla-shards" layout:xla:random conv_sela.4x2.fp16 --configs 4 --slates 10 --members 5)
  local alexnet_step=("$work/shards" layout:xla:random alexnet_train_batch_32 --configs 4 --slates 10 --members 5)
  local resnet_step=("$work/shards" layout:xla:default resnet_main_10904 --configs 10 --slates 4 --members 5)
  local nlp_step=("$work/nlp-shards" layout:nlp:random attention_bano.4x2.fp16 --model latenciaga_nlp --configs 10 --slates 4 --members 5)
  local one_unit=(--unit graph) resnet_peer alexnet_peer xla_peer nlp_peer
  resnet_peer=$(peer train "$resnet" --configs 10 --slates 4)
  alexnet_peer=$(peer train "$alexnet" --configs 4 --slates 10)
  xla_peer=$(peer train "$work"/xla/layout/xla/random/train/*.npz --configs 4 --slates 10 --steps 10)
  nlp_peer=$(peer train "$work"/nlp/layout/nlp/random/train/*.npz --model latenciaga_nlp --configs 10 --slates 4 --steps 10)
  row resnet-4x10x5 5 24 "$(ours "${resnet_step[@]}")" "$resnet_peer"
  row resnet-one-unit 5 8 "$(ours "${resnet_step[@]}" "${one_unit[@]}")" "$resnet_peer"
  row alexnet-10x4x5 5 48 "$(ours "${alexnet_step[@]}")" "$alexnet_peer"
  row alexnet-one-unit 5 7 "$(ours "${alexnet_step[@]}" "${one_unit[@]}")" "$alexnet_peer"
  row xla-14105-nodes-10x4x5 5 56 "$(ours "${xla_step[@]}")" "$xla_peer"
  row xla-one-unit 5 13 "$(ours "${xla_step[@]}" "${one_unit[@]}")" "$xla_peer"
  row nlp-5659-nodes-4x10x5 5 75 "$(ours "${nlp_step[@]}")" "$nlp_peer"
  row nlp-one-unit 5 53 "$(ours "${nlp_step[@]}" "${one_unit[@]}")" "$nlp_peer"
  row resnet-score-112-runs 1 20 "$(ours "$work/shards" layout:xla:default resnet_main_10904 --mode infer)" "$(peer infer "$resnet" --block 64 --steps 5)"
  exit $code
}

mkdir -p "$(dirname "$report")"
printf '# GPU check\n\nMade by scripts/gpu_check.sh.\n' > "$report"
stage "facts" 30 facts
stage "kernels against the emulation" 60 kernels
stage "conversion" 60 data
stage "gradients like the CPU's" 60 gradients
stage "gradients of every system like the CPU's" 120 systems
stage "scores like the CPU's" 60 like_the_cpu
stage "the same bits twice, for members alone, and over NCCL" 90 bits
stage "the same bits for 1 to 5 members, wherever they stand" 90 members
stage "the same bits for eight ranks on one GPU" 90 ranks
stage "bits of a resumed run" 60 resume
TESTS="dist_mpi_test" stage "collectives of one rank" 45 tests
stage "NCCL of one rank, and a wrong call" 45 nccl
TESTS="models_layers_test models_operators_gpu_test" FILTER='*Gpu*' SHARDS=8 stage "layers and operators on the GPU against the CPU" 90 tests
stage "AlexNet to a Kendall tau of 0.74" 60 score
stage "compute-sanitizer over every layer and kernel" 120 sanitizer
stage "bandwidth of kernels, speed of products" 60 bandwidth
stage "times of steps" 200 times
exit $failed
