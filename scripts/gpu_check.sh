#!/usr/bin/env bash
# Shows on a machine with one GPU that training there is right, and how fast it is. It needs no network and takes some
# minutes. Each stage has a time limit and ends as PASS, FAIL or SKIP; what a stage measured stands below its line.
#
#   scripts/gpu_check.sh NPZ REPORT.md       NPZ: raw TpuGraphs files with AlexNet of layout:xla:random and ResNet of
#                                            layout:xla:default (bench/against_pyg.py)
#
# The programs are those of build/release (TPUDIST_BUILD), or those on the PATH after `. BUNDLE/environment.sh`
# (scripts/gpu_bundle.sh). The peer needs a python3 (TPUDIST_PYTHON) with torch and torch_geometric.
# Exit code: 0 where no stage failed, 1 else.
set -uo pipefail
(( $# == 2 )) || { sed -n '2,12p' "$0" >&2; exit 2; }
npz=$(realpath "$1") report=$(realpath -m "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${TPUDIST_BUILD:-build/release} python=${TPUDIST_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 TPUDIST_DATA=$work/shards
failed=0

program() { # its path, from the build folder or the PATH
  local found
  found=$(find "$build" -name "$1" -type f -perm -u+x 2> /dev/null | head -n 1)
  [[ -n $found ]] || found=$(command -v "$1") || return 1
  echo "$found"
}

# stage NAME SECONDS FUNCTION: runs it with the limit. The function's code: 0 PASS, 77 SKIP, else FAIL.
stage() {
  local begin=$SECONDS code output=$work/stage.txt
  export -f "$3" program
  timeout "$2" bash -c "set -euo pipefail; $3" > "$output" 2>&1
  code=$?
  local verdict=FAIL
  case $code in 0) verdict=PASS ;; 77) verdict=SKIP ;; 124) echo "stopped after $2 s" >> "$output" ;; esac
  [[ $verdict == FAIL ]] && failed=1
  printf '\n## %s: %s (%d s)\n\n```text\n%s\n```\n' "$verdict" "$1" $((SECONDS - begin)) "$(tail -n 40 "$output" | cut -c 1-160)" >> "$report"
  printf '%s  %s (%d s)\n' "$verdict" "$1" $((SECONDS - begin))
}
export build work npz python

facts() {
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader || { echo "no GPU"; exit 77; }
  lscpu | grep -E '^(Model name|CPU\(s\))'
  tpudist=$(program tpudist); "$tpudist" --version
}
need_gpu() { nvidia-smi > /dev/null 2>&1 || { echo "no GPU"; exit 77; }; }
export -f need_gpu

tests() { # every case of the programs that hold GPU tests; a case that is skipped there is a failure
  need_gpu
  local test count=0
  for test in $TESTS; do
    path=$(program "$test") || continue
    count=$((count + 1))
    echo "$test: $("$path" ${FILTER:+--gtest_filter="$FILTER"} --gtest_color=no 2>&1 | tee "$work/$test.txt" | grep -E '^\[  (PASSED|FAILED|SKIPPED)' | head -n 8)"
    if grep -qE '^\[  (FAILED|SKIPPED)' "$work/$test.txt"; then exit 1; fi
  done
  (( count > 0 )) || { echo "none of the programs $TESTS is here"; exit 77; }
}

data() {
  tpudist=$(program tpudist)
  "$tpudist" convert "$npz" "$work/shards" | tail -n 3
  for preset in xla nlp; do
    "$tpudist" synth "$work/$preset" --preset $preset --collections layout:$preset:random --graphs 1,0,0 --configs 400 | tail -n 1
    "$tpudist" convert "$work/$preset" "$work/$preset-shards" | tail -n 1
  done
}

alexnet() { "$(program tpudist)" train experiments/alexnet.yaml --run-dir "$work/run-$1" dist.threads=8 "${@:2}"; }
parameters() { grep '^parameters:' "$1" | cut -d ' ' -f 2; }
export -f alexnet parameters

bits() { # the same training twice, with each member in a call of its own, and with NCCL's all-reduce of one rank
  need_gpu
  alexnet first dist.device=cuda train.steps=40 > "$work/first.txt"
  alexnet again dist.device=cuda train.steps=40 > "$work/again.txt"
  alexnet nccl dist.device=cuda dist.reduce=nccl train.steps=40 > "$work/nccl.txt"
  alexnet alone dist.device=cuda batch.member_chunk=1 train.steps=40 > "$work/alone.txt"
  for run in first again alone nccl; do echo "$run: parameters $(parameters "$work/$run.txt")"; done
  [[ $(parameters "$work/first.txt") == $(parameters "$work/again.txt") ]]
  [[ $(parameters "$work/first.txt") == $(parameters "$work/alone.txt") ]]
  [[ $(parameters "$work/first.txt") == $(parameters "$work/nccl.txt") ]]
}

like_the_cpu() { # scores after five steps: the order of additions differs, so bits do, and numbers hardly
  need_gpu
  for device in cpu cuda; do
    alexnet five-$device dist.device=$device train.steps=5 train.evaluate_every=5 > "$work/$device.txt"
    echo "$device: $(grep -E '^ *member [0-9]' "$work/$device.txt" | awk '{printf "%s ", $3}')"
  done
  paste <(grep -E '^ *member [0-9]' "$work/cpu.txt") <(grep -E '^ *member [0-9]' "$work/cuda.txt") \
    | awk '{d = $3 - $6; if (d < 0) d = -d; if (d > 0.002) bad = 1} END {exit bad}'
}

resume() { # a run that its time limit stops and that goes on gives the bits of one that never stopped
  need_gpu
  code=0
  alexnet stopped dist.device=cuda train.steps=40 train.time_limit=1 > "$work/limit.txt" 2>&1 || code=$?
  echo "exit code $code at the time limit, $(grep -cE '^step ' "$work/limit.txt") lines of steps"
  (( code == 85 ))
  alexnet stopped dist.device=cuda train.steps=40 --resume > "$work/stopped.txt"
  alexnet whole dist.device=cuda train.steps=40 > "$work/whole.txt"
  echo "resumed $(parameters "$work/stopped.txt"), whole $(parameters "$work/whole.txt")"
  [[ $(parameters "$work/stopped.txt") == $(parameters "$work/whole.txt") ]]
}

score() { # the whole recipe
  need_gpu
  alexnet whole-recipe dist.device=cuda > "$work/recipe.txt"
  grep -E 'members together|training:|peak memory' "$work/recipe.txt"
  grep -E '^ *members together' "$work/recipe.txt" | awk '{exit !($3 >= 0.74)}'
}

sanitizer() {
  need_gpu
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null) || { echo "no compute-sanitizer"; exit 77; }
  layers=$(program models_layers_test) || { echo "no models_layers_test"; exit 77; }
  "$tool" --tool memcheck --error-exitcode 9 "$layers" --gtest_filter='*OnGpu*InDouble*' --gtest_brief=1 | tail -n 3
}

times() { # steps in milliseconds, with five members; the peer trains them one after the other
  need_gpu
  bench=$(program step_bench) || { echo "no step_bench"; exit 77; }
  peer() { # its arguments -> milliseconds, or "-"
    "$python" bench/pyg_peer.py "$@" --device cuda --threads 8 2> /dev/null | "$python" -c 'import json, sys; print(json.load(sys.stdin)["seconds_median"] * 1e3)' || echo -
  }
  ours() { "$bench" "$@" --device 0 --threads "$(nproc)" --steps 20 --seconds 6 | "$python" -c 'import json, sys
line = json.load(sys.stdin); print(line["seconds_median"] * 1e3, line.get("planning_seconds_median", 0) * 1e3)'; }
  echo "case                         tpudist ms   planning ms   PyTorch Geometric ms   ratio"
  row() { # NAME MEMBERS OURS PEER
    echo "$1 $2 $3 $4" | awk '{printf "%-28s %10.1f %13.1f %22s %7s\n", $1, $3, $4, $5, ($5 == "-" ? "-" : sprintf("%.1f", $5 * $2 / $3))}'
  }
  resnet="$npz/layout/xla/default/train/resnet_main_10904.npz" alexnet="$npz/layout/xla/random/train/alexnet_train_batch_32.npz"
  row resnet-4x10x5 5 "$(ours "$work/shards" layout:xla:default resnet_main_10904 --configs 10 --slates 4 --members 5)" "$(peer train "$resnet" --configs 10 --slates 4)"
  row alexnet-10x4x5 5 "$(ours "$work/shards" layout:xla:random alexnet_train_batch_32 --configs 4 --slates 10 --members 5)" "$(peer train "$alexnet" --configs 4 --slates 10)"
  row xla-14105-nodes-10x4x5 5 "$(ours "$work/xla-shards" layout:xla:random conv_sela.4x2.fp16 --configs 4 --slates 10 --members 5)" "$(peer train "$work"/xla/layout/xla/random/train/*.npz --configs 4 --slates 10 --steps 10)"
  row nlp-5659-nodes-4x10x5 5 "$(ours "$work/nlp-shards" layout:nlp:random attention_bano.4x2.fp16 --model latenciaga_nlp --configs 10 --slates 4 --members 5)" "$(peer train "$work"/nlp/layout/nlp/random/train/*.npz --model latenciaga_nlp --configs 10 --slates 4 --steps 10)"
  row resnet-score-112-runs 1 "$(ours "$work/shards" layout:xla:default resnet_main_10904 --mode infer)" "$(peer infer "$resnet" --block 64 --steps 5)"
}

mkdir -p "$(dirname "$report")"
printf '# GPU check\n\nMade by scripts/gpu_check.sh.\n' > "$report"
stage "facts" 60 facts
stage "conversion and synthetic data" 120 data
TESTS="models_layers_test models_operators_gpu_test" FILTER='*Gpu*' stage "layers and operators on the GPU against the CPU" 180 tests
TESTS="dist_mpi_test" stage "collectives of one rank, NCCL's too" 60 tests
stage "the same bits twice, for members alone, and over NCCL" 120 bits
stage "numbers like the CPU's" 90 like_the_cpu
stage "bits of a resumed run" 90 resume
stage "AlexNet to a Kendall tau of 0.74" 120 score
stage "compute-sanitizer over every layer" 150 sanitizer
stage "times of steps" 240 times
exit $failed
