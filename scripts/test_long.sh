#!/usr/bin/env bash
# The longer checks, for which continuous integration has no time. Prints a table; the exit code is 1 if
# one fails. Some ten minutes on two cores; with other CPUs and the sanitizers an hour and a half, with fuzzing two
# hours more.
#
#   1. An XLA, an NLP and a tile network for 8 steps on 1, 2, 3, 4, 5 and 8 ranks with 1 and 2 threads each:
#      the same parameters. TPUDIST_TEST_RANKS="1 2 3" and TPUDIST_TEST_NETWORKS="xla nlp tile" take fewer.
#   2. Resumed from steps 0, 4 and 8, and after an evaluation was killed, on another number of ranks: the
#      same parameters.
#   3. Scores and submission on 1 and 3 ranks: the same files.
#   4. 500 seeded damages each of shards (before and during reading), manifests, caches, predictions and
#      checkpoints: each is reported with one line, or harmless.
#   5. Every system of experiments/systems for 200 steps with three seeds, on fixed slates: a lower loss,
#      and on 1 and 2 ranks the same parameters, also if resumed at step 100. The 1st place's for tile runs on real
#      kernels if TPUDIST_REAL_DATA has them, the others on synthetic data; the 2nd place's layers are narrower.
#      TPUDIST_TEST_SYSTEMS="name ..." takes only these. TPUDIST_TEST_ONLY=systems runs only this check,
#      TPUDIST_TEST_ONLY=ranks only 1 and 2.
#   6. All tests as on CPUs without AVX-512, and without AVX2: tpudist's vectors and ATen are restricted to
#      that. TPUDIST_TEST_ONLY=cpus runs only this check; TPUDIST_TEST_CPUS="avx2 plain" takes fewer, "" none.
#   7. Every file compiled by itself, and the program linked as a whole: different types or functions of one name
#      are errors. TPUDIST_TEST_ONLY=odr runs only this check.
#   8. AlexNet with five members and folds for 20 steps on the emulated device: the same parameters on 1, 2 and
#      3 ranks and with each member in its own call. With four seeds, scores are no further from eight runs on the
#      CPU, which round in other orders, than those are from each other; three planted faults are found. Needs
#      real data (TPUDIST_REAL_DATA) and some ten minutes. TPUDIST_TEST_ONLY=device runs only this check.
#   9. The tests under the sanitizers (scripts/test.sh); TPUDIST_TEST_SANITIZERS=0 leaves them out.
#  10. Every reader of files under libFuzzer (tests/fuzz), ten minutes each: no crash, no hang, no more than 2 GiB.
#      Needs Clang 16. TPUDIST_FUZZ_SECONDS=60 takes less time, TPUDIST_FUZZ_TARGETS="npz yaml" fewer readers,
#      TPUDIST_TEST_ONLY=fuzz runs only this check.
#  11. Every file compiled by Clang: what a mutex guards is used only while it is held (core/mutex.hpp).
#      Needs Clang 16. TPUDIST_TEST_ONLY=thread_safety runs only this check.
#
# TPUDIST_LONG_DIR  folder of data, runs and logs, kept; default a new one in /tmp, removed if all pass
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tpudist=$PWD/build/release/tpudist
scratch=${TPUDIST_LONG_DIR:-$(mktemp -d)}
mkdir -p "$scratch"
failures=0

# As root, Open MPI asks for consent; in containers one of its copying methods is not allowed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_NUM_THREADS=1

# on_ranks RANKS COMMAND... runs tpudist on so many ranks; its output goes to the log.
on_ranks() {
  local ranks=$1; shift
  echo "# $ranks ranks: $*" >> "$scratch/log"
  mpirun --bind-to none --oversubscribe -np "$ranks" "$tpudist" "$@" 2>&1 | tee -a "$scratch/log"
}

# row NAME RESULT EXPECTED prints a line of the table.
row() {
  local verdict=ok
  if [[ $2 != "$3" ]]; then
    verdict="FAILED, expected $3"
    failures=$((failures + 1))
  fi
  printf '%-36s %-18s %5s s  %s\n' "$1" "$2" "$((SECONDS - started))" "$verdict"
}

# train NETWORK RUN RANKS THREADS [key=value ...] [--resume] prints the hash of the parameters, or "none".
train() {
  local network=$1 run=$2 ranks=$3 threads=$4; shift 4
  local options
  case $network in
    xla) options=(experiments/demo.yaml model.preset=latenciaga_xla) ;;
    nlp) options=(experiments/demo_nlp.yaml model.preset=latenciaga_nlp batch.slates=2) ;;
    tile) options=(experiments/demo_tile.yaml model.preset=latenciaga_tile) ;;
  esac
  [[ $* == *train.evaluate_every=* ]] || options+=(train.evaluate_every=0)
  { on_ranks "$ranks" train "${options[@]}" "model.blocks=[]" train.steps=8 \
      train.last_evaluation=none train.checkpoint_every=4 train.keep_checkpoints=9 train.log_every=1 \
      ensemble.members=3 "dist.threads=$threads" --run-dir "$scratch/$run" "$@" || true
  } | sed -n 's/^parameters: //p' | grep . || echo none
}

declare -A expected  # by network
check_ranks() {
  local network ranks threads
  for network in ${TPUDIST_TEST_NETWORKS:-xla nlp tile}; do
    for ranks in ${TPUDIST_TEST_RANKS:-1 2 3 4 5 8}; do
      for threads in 1 2; do
        started=$SECONDS
        hash=$(train "$network" "run-$network-$ranks-$threads" "$ranks" "$threads")
        [[ -n ${expected[$network]:-} ]] || expected[$network]=$hash
        [[ ${expected[$network]} != none ]] || expected[$network]="a hash"
        row "$network, $ranks ranks x $threads threads" "$hash" "${expected[$network]}"
      done
    done
  done
}

# kill_evaluation RUN RANKS trains until the evaluation after step 4 has begun, and kills all ranks there;
# prints "killed", or what happened instead.
kill_evaluation() {
  local run=$scratch/$1 ranks=$2 job process
  mpirun --bind-to none --oversubscribe -np "$ranks" "$tpudist" train experiments/demo.yaml \
    model.preset=latenciaga_xla "model.blocks=[]" train.steps=8 train.evaluate_every=4 train.evaluate_rows=100000 \
    train.last_evaluation=none train.checkpoint_every=2 train.keep_checkpoints=9 train.log_every=1 \
    ensemble.members=3 dist.threads=1 --run-dir "$run" >> "$scratch/log" 2>&1 &
  job=$!
  until grep -qs '"step":4,' "$run/metrics.jsonl" || ! kill -0 "$job" 2> /dev/null; do sleep 0.02; done
  for process in $(pgrep -P "$job"); do kill -9 "$process" 2> /dev/null || true; done
  wait "$job" 2> /dev/null || true
  if ! grep -qs '"step":4,' "$run/metrics.jsonl"; then
    echo "not trained"
  elif [[ -e $run/checkpoints/step-000000004.h5 ]]; then
    echo "too late"
  else
    echo killed
  fi
}

check_resume() {
  local ranks step from=run-xla-3-1
  [[ -n ${expected[xla]:-} && -d $scratch/$from ]] || return 0
  for step in 0 4 8; do
    for ranks in 1 2 5; do
      started=$SECONDS
      cp -r "$scratch/$from" "$scratch/resumed-$step-$ranks"
      (( step == 8 )) || rm -f "$scratch/resumed-$step-$ranks"/checkpoints/step-*8.h5
      (( step > 0 )) || rm -f "$scratch/resumed-$step-$ranks"/checkpoints/step-*.h5
      row "resumed from step $step, $ranks ranks" \
        "$(train xla "resumed-$step-$ranks" "$ranks" 1 --resume)" "${expected[xla]}"
    done
  done
  for ranks in 1 3; do
    started=$SECONDS
    row "an evaluation on 2 ranks" "$(kill_evaluation "resumed-evaluation-$ranks" 2)" killed
    row "resumed from there, $ranks ranks" \
      "$(train xla "resumed-evaluation-$ranks" "$ranks" 1 train.evaluate_every=4 train.evaluate_rows=100000 --resume)" \
      "${expected[xla]}"
  done
}

check_files() {
  local ranks file
  for ranks in 1 3; do
    on_ranks "$ranks" evaluate "$scratch/run-xla-3-1" --json "$scratch/scores-$ranks.json" > /dev/null || true
    on_ranks "$ranks" predict "$scratch/run-xla-3-1" --csv "$scratch/rank-$ranks.csv" > /dev/null || true
  done
  for file in scores-%.json rank-%.csv; do
    started=$SECONDS
    row "3 ranks: ${file/-%/}" "$(cksum < "$scratch/${file/\%/3}" | tr ' ' -)" \
      "$(cksum < "$scratch/${file/\%/1}" | tr ' ' -)"
  done
}

# losses RUN prints the members' losses before the first step and the last one, on the same slates.
losses() {
  local step
  for step in 1 200; do
    sed -n "/\"kind\":\"step\"/{/\"step\":$step[,}]/s/.*\"loss\":\\[\\([^]]*\\)\\].*/\\1/p}" "$scratch/$1/metrics.jsonl"
  done | paste -sd ' '
}

# falls BEFORE AFTER, lists of losses with commas: whether each got lower.
falls() {
  awk -v before="$1" -v after="$2" 'BEGIN {
    n = split(before, b, ","); m = split(after, a, ","); ok = n == 3 && m == 3
    for (i = 1; i <= n; ++i) ok = ok && a[i] + 0 < b[i] + 0
    print ok ? "lower" : "not lower" }'
}

# small_data makes what slates are drawn from: few graphs of so few configurations that every step takes
# all of them.
small_data() {
  [[ -d $scratch/small ]] && return
  "$tpudist" synth "$scratch/small-npz" --preset tiny --graphs 2,1,1 --configs 24 >> "$scratch/log" 2>&1
  "$tpudist" convert "$scratch/small-npz" "$scratch/small" >> "$scratch/log" 2>&1
  local real=${TPUDIST_REAL_DATA:-../shared/data/real}/npz tiles=tile/xla/train
  [[ -d $real/$tiles ]] || return 0
  mkdir -p "$scratch/real-npz/$tiles"
  cp "$real/$tiles"/*.npz "$scratch/real-npz/$tiles"
  "$tpudist" convert "$scratch/real-npz" "$scratch/real" >> "$scratch/log" 2>&1
}

# train_system SYSTEM RANKS [RUN --resume] trains one for 200 steps, or goes on with RUN, and prints the hash of its
# parameters, or "none".
train_system() {
  local system=$1 ranks=$2 run=${3:-$1-$2}; shift "$(($# < 3 ? 2 : 3))"
  local data=$scratch/small slates=2 options=()
  case $system in
    first_place_tile) [[ -d $scratch/real ]] && data=$scratch/real slates=15 ;;
    fifth_place) options=(batch.unit_slates=2) ;;  # its loss is of the batch
    latenciaga_xla_gatv2 | latenciaga_xla_gine | latenciaga_xla_dropout | latenciaga_xla_both_directions) ;;
    latenciaga_xla*) options=("model.blocks=[{width: 32, repeat: 2}, {width: 64, repeat: 2}]") ;;
    latenciaga_nlp) options=("model.blocks=[{width: 64, repeat: 3, residual: true}, {width: 96, repeat: 2, residual: true}]") ;;
    latenciaga_*) options=("model.blocks=[{width: 64, repeat: 3}, {width: 96, repeat: 2}]") ;;
  esac
  { TPUDIST_DATA=$data on_ranks "$ranks" train "experiments/systems/$system.yaml" \
      "batch={slates: $slates, configs: 1024, draw: graphs}" "ensemble={members: 3, vary: [init]}" \
      train.steps=200 train.evaluate_every=0 train.early_stop.patience=0 train.last_evaluation=none \
      train.checkpoint_every=100 train.log_every=1 "dist.threads=$((2 / ranks))" "${options[@]}" "$@" \
      --run-dir "$scratch/$run" || true
  } | sed -n 's/^parameters: //p' | grep . || echo none
}

check_systems() {
  local system file before after
  small_data
  for file in experiments/systems/*.yaml; do
    system=$(basename "$file" .yaml)
    [[ " ${TPUDIST_TEST_SYSTEMS:-$system} " == *" $system "* ]] || continue
    rm -rf "$scratch/$system"-[12]
    started=$SECONDS
    hash=$(train_system "$system" 1)
    read -r before after <<< "$(losses "$system-1")"
    row "$system" "$(falls "${before:-}" "${after:-}")" lower
    echo "${before:-none} -> ${after:-none}" | sed -E 's/([0-9]\.[0-9]{4})[0-9]*/\1/g; s/^/  losses of three seeds: /'
    [[ $hash != none ]] || hash="a hash"
    started=$SECONDS
    row "$system, 2 ranks" "$(train_system "$system" 2)" "$hash"
    started=$SECONDS
    rm -f "$scratch/$system-1"/checkpoints/step-*200.h5
    row "$system, resumed on 2 ranks" "$(train_system "$system" 2 "$system-1" --resume)" "$hash"
  done
}

check_damages() {
  started=$SECONDS
  local result=found
  cmake --build --preset release --target data_loading_test results_records_test results_checkpoints_test >> "$scratch/build.log"
  TPUDIST_DAMAGES=500 ctest --test-dir build/release -R 'damage_test|records/predictions_file_test|checkpoints/checkpoint_test' \
    --output-on-failure >> "$scratch/log" 2>&1 || result=missed
  row "500 damages of each file" "$result" found
}

check_cpus() {
  local cpu aten result
  for cpu in ${TPUDIST_TEST_CPUS-avx2 plain}; do
    started=$SECONDS
    case $cpu in
      avx2) aten=avx2 ;;
      plain) aten=default ;;
      *) echo "TPUDIST_TEST_CPUS knows avx2 and plain, not $cpu" >&2; exit 2 ;;
    esac
    cmake --build --preset release >> "$scratch/build.log"
    result=passed
    TPUDIST_CPU=$cpu ATEN_CPU_CAPABILITY=$aten \
      ctest --preset release -j2 > "$scratch/cpu-$cpu.log" 2>&1 || result=failed
    row "tests as on a CPU with $cpu code" "$result" passed
  done
}

check_one_definition() {
  started=$SECONDS
  local result=one
  { cmake --preset odr "${torch[@]}" && cmake --build --preset odr --target tpudist; } > "$scratch/odr.log" 2>&1 ||
    result=several
  grep -E 'One Definition Rule|Wlto-type-mismatch' "$scratch/odr.log" || true
  row "definitions of each name" "$result" one
}

check_thread_safety() {
  command -v clang++-16 > /dev/null ||
    { echo "no check of mutexes: apt-get install clang-16"
      [[ ${TPUDIST_TEST_ONLY:-} != thread_safety ]] || failures=$((failures + 1))
      return 0; }
  started=$SECONDS
  local result=held
  { cmake --preset thread_safety "${torch[@]}" && cmake --build --preset thread_safety; } \
    > "$scratch/thread_safety.log" 2>&1 || result="not held"
  grep 'error:' "$scratch/thread_safety.log" || true
  row "mutexes" "$result" held
}

# train_device NAME RANKS SEED SETTINGS... trains on the data of check_device.
train_device() {
  local name=$1 ranks=$2 seed=$3; shift 3
  tpudist=$PWD/build/release/tests/gpu_check/tpudist_emulated TPUDIST_DATA=$scratch/device on_ranks "$ranks" train \
    experiments/alexnet.yaml --run-dir "$scratch/device-$name" dist.threads=1 train.steps=20 train.evaluate_every=5 \
    train.evaluate_rows=1000 train.last_evaluation=sampled "ensemble={members: 5, vary: [init, fold], folds: 5}" "seed={init: $seed, order: $seed}" \
    "data.include.train=['*']" "$@" > "$scratch/device-$name.txt" || true
}

# train_cpu SEED trains in eight orders of rounding: with fused layers or by the operators of layers, which a layer
# that drops nothing asks for and which the device runs, and four kinds of units.
train_cpu() {
  local seed=$1 layers unit settings
  for layers in fused single; do
    settings=()
    [[ $layers == fused ]] ||
      settings=("model.blocks=[{layer: sage, width: 64, aggregation: max, repeat: 6}, {layer: dropout, rate: 0}]")
    for unit in graph 1 2 3; do
      if [[ $unit == graph ]]; then set -- batch.unit=graph; else set -- batch.unit=slates "batch.unit_slates=$unit"; fi
      train_device "$seed-$layers-$unit" 1 "$seed" dist.device=cpu "$@" ${settings[@]+"${settings[@]}"}
    done
  done
}

# apart NAME: whether the device's scores (runs NAME-SEED) are further from those of the eight CPU runs of the seed than
# such runs are from each other. It asks two things:
#   - After 5 steps rounding has moved scores by about 1e-3. The device's distance from the CPU's mean may be 1e-4 more
#     than the largest of a CPU run from the mean of the others, in the mean of the seeds.
#   - After 20 steps rounding has grown to 1e-2 and more, and the largest of eight is no limit that a ninth run keeps.
#     So: is the device one of nine like the others? Then each of the ranks 1 to 9 of its mean distance from the other
#     eight is equally likely, and the sum of the ranks of four seeds is 35 or 36 in 5 of 9^4 cases: 0.08 % false alarms.
#     The same after 5 steps, where faults stand out more: together 0.15 %.
# That takes orders of rounding that can change places. Those of fused layers alone cannot: they round forward passes
# alike, and the device, and a CPU that runs by the operators of layers, was further from them than they were.
apart() {
  python3 - "$scratch" "$1" << 'TEXT'
import json, sys
folder, device = sys.argv[1:]
seeds = (1, 2, 3, 4)
cpus = [f"{layers}-{unit}" for layers in ("fused", "single") for unit in ("graph", "1", "2", "3")]
def scores(run):
    lines = map(json.loads, open(f"{folder}/device-{run}/metrics.jsonl"))
    return {line["step"]: [*line["members"], line["ensemble"]] for line in lines if line["kind"] == "evaluation"}
def from_mean(run, others):
    means = [sum(column) / len(column) for column in zip(*others)]
    return max(abs(own - mean) for own, mean in zip(run, means))
def mean_distance(run, others):
    return sum(abs(a - b) for other in others for a, b in zip(run, other)) / len(others) / len(run)
beyond, ranks = [], {5: [], 20: []}
for seed in seeds:
    own, runs = scores(f"{device}-{seed}"), [scores(f"{seed}-{cpu}") for cpu in cpus]
    early, text = [run[5] for run in runs], f"  seed {seed}:"
    beyond.append(from_mean(own[5], early) - max(from_mean(run, early[:i] + early[i + 1:]) for i, run in enumerate(early)))
    for step, of_step in ranks.items():
        nine = [run[step] for run in (own, *runs)]
        distances = [mean_distance(run, nine[:i] + nine[i + 1:]) for i, run in enumerate(nine)]
        of_step.append(1 + sum(other < distances[0] for other in distances[1:]))
        text += (f" after {step} steps {distances[0]:.1e}, the CPU's {min(distances[1:]):.1e} to {max(distances[1:]):.1e}, "
                 f"rank {of_step[-1]};")
    print(text, file=sys.stderr)
mean, sums = sum(beyond) / len(seeds), [sum(of_step) for of_step in ranks.values()]
print(f"  beyond the CPU's largest after 5 steps {mean:.1e}, sums of ranks {sums}", file=sys.stderr)
print("apart" if mean > 1e-4 or max(sums) >= 35 else "within")
TEXT
}

check_device() {
  local real=${TPUDIST_REAL_DATA:-../shared/data/real}/npz/layout/xla/random npz=$scratch/device-npz/layout/xla/random
  [[ -d $real ]] || { echo "no real data: the emulated device is left out"; return 0; }
  cmake --build --preset release --target tpudist_emulated >> "$scratch/build.log"
  "$tpudist" synth "$scratch/device-npz" --preset tiny --collections layout:xla:random --graphs 5,0,0 --configs 200 >> "$scratch/log" 2>&1
  cp -r "$real/train" "$real/valid" "$npz"
  "$tpudist" convert "$scratch/device-npz" "$scratch/device" >> "$scratch/log" 2>&1
  local hash="" run ranks seed planted
  for run in together-1:1 two:2 three:3 alone:1; do
    started=$SECONDS ranks=${run#*:} run=${run%:*}
    if [[ $run == alone ]]; then train_device $run "$ranks" 1 dist.device=cuda batch.member_chunk=1
    else train_device $run "$ranks" 1 dist.device=cuda; fi
    parameters=$(sed -n 's/^parameters: //p' "$scratch/device-$run.txt" | grep . || echo none)
    [[ -n $hash && $hash != none ]] || hash=$parameters
    row "emulated device, $run" "$parameters" "${hash/none/a hash}"
  done
  started=$SECONDS
  for seed in 1 2 3 4; do
    (( seed == 1 )) || train_device "together-$seed" 1 "$seed" dist.device=cuda
    train_cpu "$seed"
  done
  row "scores beside the CPU's" "$(apart together)" within
  # Faults of the device alone, which that must find.
  for planted in precision=tf32 optimizer.lr=4.004e-3 optimizer.lr=4.04e-3; do
    started=$SECONDS
    for seed in 1 2 3 4; do train_device "$planted-$seed" 1 "$seed" dist.device=cuda $planted; done
    row "planted: $planted" "$(apart "$planted")" apart
  done
}

check_fuzz() {
  local fuzz=build/fuzz/tests/fuzz/tpudist_fuzz memory=/dev/shm target result
  [[ -w $memory ]] || memory=${TMPDIR:-/tmp}  # the readers take files
  command -v clang++-16 > /dev/null ||
    { echo "no fuzzing: apt-get install clang-16 libclang-rt-16-dev"
      [[ ${TPUDIST_TEST_ONLY:-} != fuzz ]] || failures=$((failures + 1))
      return 0; }
  { cmake --preset fuzz && cmake --build --preset fuzz; } > "$scratch/fuzz.log" 2>&1
  for target in ${TPUDIST_FUZZ_TARGETS:-$($fuzz --targets)}; do
    started=$SECONDS result=clean
    mkdir -p "$scratch/fuzz/$target"
    TMPDIR=$memory $fuzz "--target=$target" -max_total_time="${TPUDIST_FUZZ_SECONDS:-600}" -timeout=10 -rss_limit_mb=2048 \
      -malloc_limit_mb=1024 -max_len=16384 -print_final_stats=1 -artifact_prefix="$scratch/fuzz/$target-" \
      "$scratch/fuzz/$target" > "$scratch/fuzz-$target.log" 2>&1 || result=fault
    row "fuzzing $target" "$result" clean
    sed -nE 's/^#([0-9]+)[[:space:]]+DONE +cov: ([0-9]+).*/  \1 executions, \2 edges/p' "$scratch/fuzz-$target.log"
  done
}

check_sanitizers() {
  started=$SECONDS
  local result=clean
  TPUDIST_TEST_SANITIZERS=1 scripts/test.sh > "$scratch/sanitizers.log" 2>&1 || result=errors
  row "tests, also under sanitizers" "$result" clean
}

scripts/setup.sh
torch=(${TPUDIST_TORCH_ROOT:+"-DTPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT"})
if [[ ${TPUDIST_TEST_ONLY:-} != @(odr|thread_safety|fuzz) ]]; then
  cmake --preset release "${torch[@]}" > "$scratch/build.log"
  cmake --build --preset release --target tpudist >> "$scratch/build.log"
fi
if [[ ${TPUDIST_TEST_ONLY:-} == cpus ]]; then
  check_cpus
elif [[ ${TPUDIST_TEST_ONLY:-} == odr ]]; then
  check_one_definition
elif [[ ${TPUDIST_TEST_ONLY:-} == thread_safety ]]; then
  check_thread_safety
elif [[ ${TPUDIST_TEST_ONLY:-} == device ]]; then
  check_device
elif [[ ${TPUDIST_TEST_ONLY:-} == fuzz ]]; then
  check_fuzz
elif [[ ${TPUDIST_TEST_ONLY:-} != systems ]]; then
  rm -rf "$scratch"/{npz,shards,log} "$scratch"/run-* "$scratch"/resumed-*
  "$tpudist" synth "$scratch/npz" --preset demo >> "$scratch/log" 2>&1
  "$tpudist" convert "$scratch/npz" "$scratch/shards" >> "$scratch/log" 2>&1
  export TPUDIST_DATA=$scratch/shards
  check_ranks
  check_resume
  if [[ ${TPUDIST_TEST_ONLY:-} != ranks ]]; then
    check_files
    check_damages
    check_cpus
    check_one_definition
    check_thread_safety
    check_device
    [[ ${TPUDIST_TEST_SANITIZERS:-1} == 0 ]] || check_sanitizers
    check_fuzz
  fi
fi
[[ ${TPUDIST_TEST_ONLY:-} == @(ranks|cpus|odr|thread_safety|device|fuzz) ]] || check_systems

if (( failures > 0 )); then
  echo "$failures checks failed; see the logs in $scratch"
  exit 1
fi
echo "all checks passed"
[[ -n ${TPUDIST_LONG_DIR:-} ]] || rm -rf "$scratch"
