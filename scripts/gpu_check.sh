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

# alexnet NAME SETTINGS...: a training in a folder of that name, by $launch; all it prints goes to NAME.txt. The last
# setting of a key holds.
alexnet() {
  local tpudist word; tpudist=$(program tpudist)
  local -A settings=()
  for word in dist.threads=8 train.steps=$steps ${smaller[@]+"${smaller[@]}"} "${@:2}"; do settings[${word%%=*}]=$word; done
  ${launch:-} "$tpudist" train experiments/alexnet.yaml --run-dir "$work/run-$1" "${settings[@]}" \
    > "$work/$1.txt" 2>&1 || { word=$?; cat "$work/$1.txt"; return $word; }
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

rows() { # a row's bits in a product do not depend on how many rows it has
  need_gpu
  device_check rows
}

one_card() { # two and three ranks that share the GPU, over NCCL's sockets; NCCL takes them for ranks of several machines
  need_gpu
  type -P mpirun > /dev/null || { echo "no mpirun"; exit 77; }
  local check code=0 signal limit ending visible=${CUDA_VISIBLE_DEVICES:-0}; check=$(program nccl_check)
  export CUDA_VISIBLE_DEVICES=${visible%%,*} TPUDIST_TEST_ONLY_SHARE_GPU=1 NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  ranks_of() { # N PROGRAM ARGUMENTS...
    # shellcheck disable=SC2016
    mpirun --oversubscribe --bind-to none -np "$1" bash -c 'echo $$ > "$work/pid-$OMPI_COMM_WORLD_RANK"
      NCCL_HOSTID=rank-$OMPI_COMM_WORLD_RANK exec "$@"' _ "${@:2}"
  }
  sums() { grep '^sums: ' "$work/sums-$1.txt" || { cat "$work/sums-$1.txt"; return 1; }; }
  ranks_of 2 "$check" "$work" > "$work/sums-2.txt" 2>&1 || code=$?
  if (( code != 0 )) && grep -m 1 -E 'Duplicate GPU|ncclCommInitRankConfig failed: invalid usage' "$work/sums-2.txt"; then
    echo "NCCL refuses ranks that share a GPU"
    exit 77
  fi
  "$check" "$work" > "$work/sums-1.txt" 2>&1 && ranks_of 3 "$check" "$work" > "$work/sums-3.txt" 2>&1 || code=1
  sums 1; sums 2; sums 3
  [[ $code == 0 && $(sums 2) == "$(sums 1)" && $(sums 3) == "$(sums 1)" ]] || exit 1
  ranks_of 2 "$check" "$work" 10 wrong > "$work/wrong.txt" 2>&1 || code=$?
  echo "a wrong call: exit code $code"
  (( code == 1 )) && grep -m 1 'ncclAllReduce failed: invalid argument' "$work/wrong.txt" || exit 1
  local settings=(dist.device=cuda dist.threads=$(((cores + 2) / 3)))
  alexnet one "${settings[@]}"
  launch="ranks_of 2" alexnet two "${settings[@]}"
  launch="ranks_of 3" alexnet three "${settings[@]}"
  same_parameters one two three
  launch="ranks_of 2" alexnet two-nccl "${settings[@]}" dist.reduce=nccl
  echo "two, reduce: nccl: parameters $(parameters two-nccl)"
  for signal in STOP KILL; do
    rm -f "$work/pid-1"
    launch="ranks_of 2" alexnet $signal "${settings[@]}" dist.timeout=10 train.log_every=1 train.steps=1000000 train.evaluate_every=0 > /dev/null &
    limit=$((SECONDS + 60))
    until [[ -s $work/pid-1 ]] && grep -sq '"step":2' "$work/run-$signal/metrics.jsonl"; do
      (( SECONDS < limit )) || { cat "$work/$signal.txt"; exit 1; }
      sleep 0.2
    done
    ending=$SECONDS code=0
    kill -$signal "$(cat "$work/pid-1")"
    wait $! || code=$?
    echo "rank 1 got SIG$signal: exit code $code after $((SECONDS - ending)) s"
    (( SECONDS - ending <= 20 && code == 86 )) || { [[ $signal == KILL ]] && (( code == 137 )); } || { tail "$work/$signal.txt"; exit 1; }
  done
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

times() { # of a step of experiments as shipped, five members, on 27 graphs, beside the goals for an H200
  need_gpu
  local code=0 holds=0 size=400 device=cuda tpudist preset; tpudist=$(program tpudist)
  [[ -z $emulated ]] || size=200 device=cpu
  for preset in xla nlp; do
    "$tpudist" synth "$work/$preset" --preset "$([[ -n $emulated ]] && echo demo || echo $preset)" --collections layout:$preset:random --graphs 27,0,0 --configs $size --quiet | tail -n 1
    "$tpudist" convert "$work/$preset" "$work/$preset-shards" --quiet | tail -n 1
  done
  if [[ -n $emulated ]] || nvidia-smi --query-gpu=name --format=csv,noheader | grep -q H200; then holds=1; fi
  ours() { # EXPERIMENT SHARDS SETTINGS... -> median ms of a step but for the first five, and of waiting for plans in it
    "$tpudist" train "experiments/$1.yaml" --run-dir "$work/time-$1" data.shards="$2" dist.device=cuda dist.threads="$cores" \
      train.steps="$((steps > 5 ? steps : 7))" train.log_every=1 train.evaluate_every=0 train.last_evaluation=none "${@:3}" > "$work/time-$1.txt" 2>&1 || tail -n 5 "$work/time-$1.txt" >&2
    "$python" -c 'import json, statistics, sys
steps = [line for line in map(json.loads, open(sys.argv[1])) if line["kind"] == "step"][5:]
print(*(1e3 * statistics.median(step[key] for step in steps) for key in ("step_seconds", "wait_seconds")))' "$work/time-$1/metrics.jsonl" || echo 0 0
  }
  peer() { # MODEL SLATES CONFIGS NPZ... -> median ms of one member in PyTorch Geometric, plain and compiled, "-" where it fails
    local mode
    for mode in "" --compile; do
      timeout 60 "$python" bench/pyg_peer.py train "${@:4}" --model "$1" --slates "$2" --configs "$3" --device "$device" --threads 8 \
        --steps $((steps / 2)) --warm-up $((steps > 5 ? 5 : 1)) --seconds 15 $mode 2> "$work/peer.txt" | "$python" -c 'import json, sys; print(round(json.load(sys.stdin)["seconds_median"] * 1e3, 1))' 2> /dev/null || echo -
    done | paste -sd ' '
  }
  row() { # NAME GRAPHS GOAL_MS TIMES OURS PEER; TIMES: steps of the peer for one of the five members
    echo "$3 $4 $5 $6" | awk -v name="$1" -v graphs="$2" -v holds=$holds '{
      best = $5 == "-" || ($6 != "-" && $6 < $5) ? $6 : $5
      ratio = best == "-" || $3 <= 0 ? "-" : sprintf("%.1f", best * $2 / $3)
      missed = $3 <= 0 ? "no steps" : $3 > $1 || (ratio != "-" && ratio + 0 < 15) ? "goal missed" : "goal met"
      printf "| %s | %s | %.1f | %s | %.1f | %s | %s | %s | %s |\n", name, graphs, $3, $1, $4, $5, $6, ratio, missed
      exit $3 <= 0 || holds && missed != "goal met"}' || code=1
  }
  echo "| experiment | graphs | tpudist ms | goal ms | waiting ms | PyG ms | PyG compiled ms | ratio, goal 15 | |"
  echo "|---|---|---|---|---|---|---|---|---|"
  local xla=("$work"/xla/layout/xla/random/train/*.npz) nlp=("$work"/nlp/layout/nlp/random/train/*.npz)
  # With five folds a member learns from four of five slates; the peer learns from all.
  row xla 27 6 4 "$(ours xla "$work/xla-shards")" "$(peer latenciaga_xla 10 4 "${xla[@]}")"
  row nlp 27 26 4 "$(ours nlp "$work/nlp-shards")" "$(peer latenciaga_nlp 4 10 "${nlp[@]}")"
  row alexnet "1, its own" 4 5 "$(ours alexnet "$work/shards")" "$(peer alexnet 8 10 "$npz/layout/xla/random/train/alexnet_train_batch_32.npz")"
  # One graph has more edges between configurable nodes than best_xla takes.
  row best_xla 26 5 5 "$(ours best_xla "$work/xla-shards" 'data.exclude.train=["mixture_zeko.16x2.fp16"]')" "- -"
  row best_nlp 27 20 5 "$(ours best_nlp "$work/nlp-shards")" "- -"
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
stage "the same bits of a row among 1 to 200,000" 60 rows
stage "the same bits for eight ranks on one GPU" 90 ranks
stage "bits of a resumed run" 60 resume
TESTS="dist_mpi_test" stage "collectives of one rank" 45 tests
stage "NCCL of one rank, and a wrong call" 45 nccl
stage "two and three ranks on one GPU over NCCL" 120 one_card
TESTS="models_layers_test models_operators_gpu_test" FILTER='*Gpu*' SHARDS=8 stage "layers and operators on the GPU against the CPU" 90 tests
stage "AlexNet to a Kendall tau of 0.74" 60 score
stage "times of steps on 27 graphs" 300 times
stage "compute-sanitizer over every layer and kernel" 120 sanitizer
stage "bandwidth of kernels, speed of products" 60 bandwidth
exit $failed
