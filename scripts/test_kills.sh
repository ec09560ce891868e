#!/usr/bin/env bash
# Kills and stops ranks of a short training at random times, and resumes it: the result must be that of an
# undisturbed run. Prints a line for each check; the exit code is 1 if one fails.
#
#   scripts/test_kills.sh [KILLS [STOPS [LAUNCHES [NODES]]]]     100 kills, 10 stops, 20 launches and 20 nodes if
#                                                                not given; some twelve minutes
#
#   1. kill -9 of a random rank at a random time, also while a checkpoint is written, then --resume, on 2
#      and 3 ranks in turn. Each finished run has the same parameters; no process or temporary file is left
#      behind, and no job takes more than 30 s to end.
#   2. SIGSTOP of a random rank for ever: the job ends within dist.timeout and 5 s with exit code 86, and
#      says which rank the others wait for, in which collective.
#   3. kill -9 of a random rank of 3 under `tpudist launch`, which starts the job again: it ends with exit code 0,
#      the same parameters, and nothing left behind.
#   4. A node of 3 (tests/support/nodes.sh) is lost at a random time under `tpudist launch`, in turn by all its
#      processes and by its cable: the same. Prints the time lost.
#
# TPUDIST            the program; default build/release/tpudist
# TPUDIST_KILL_SEED  seed of the ranks and times; default 1
# TPUDIST_KILL_DIR   folder of data, runs and logs, kept; default a new one in /tmp, removed if all pass
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kills=${1:-100} stops=${2:-10} launches=${3:-20} nodes=${4:-20}
program=$(realpath "${TPUDIST:-build/release/tpudist}")
scratch=${TPUDIST_KILL_DIR:-$(mktemp -d)}
RANDOM=${TPUDIST_KILL_SEED:-1}
timeout=6  # dist.timeout of the stopped runs, seconds
mkdir -p "$scratch"
source tests/support/short_run.sh

# start RUN RANKS [key=value ...] trains in the background; `job` is the process of mpirun, `log` its output.
start() {
  local run=$1 ranks=$2; shift 2
  log=$scratch/$run.log
  mpirun --bind-to none --oversubscribe -np "$ranks" "$program" train "$short" \
    --run-dir "$scratch/$run" --resume "$@" > "$log" 2>&1 &
  job=$!
}

sleep_ms() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
ranks_of() { pgrep -P "$1" 2> /dev/null || true; }  # processes of the ranks of a job
# processes_of RUN: all that were started for it; unlike ranks_in, mpirun and what becomes a rank as well.
processes_of() { pgrep -f -- "--run-dir $scratch/$1( |\$)" 2> /dev/null || true; }

# ended SECONDS waits so long for the job to end, and sets `code`; false when it does not.
ended() {
  local end=$((SECONDS + $1 + 1))
  while kill -0 "$job" 2> /dev/null; do
    (( SECONDS < end )) || return 1
    sleep 0.05
  done
  code=0
  wait "$job" || code=$?
}

# nobody_left RUN: whether all processes that trained there are gone, a few seconds later at most.
nobody_left() {
  local end=$((SECONDS + 5))
  while [[ -n $(processes_of "$1") ]]; do
    (( SECONDS < end )) || return 1
    sleep 0.1
  done
}

# temporary_files RUN: files there that a finished run does not have.
temporary_files() {
  find "$scratch/$1" -mindepth 1 \( -name '*.tmp*' -o -name '.tpudist-lock' -o -path '*/ranks*' -o -name '*.damaged' \)
}

end_by_force() {
  local process
  for process in $(ranks_of "$job") "$job"; do kill -9 "$process" 2> /dev/null || true; done
  wait "$job" 2> /dev/null || true
}

# pick LIST... puts a random one of them into `picked`.
pick() { local list=("$@"); picked=${list[RANDOM % ${#list[@]}]}; }

kill_ranks() {
  local done=0 runs=0 same=0 number=0 torn=0 ranks=2 processes run
  while (( done < kills )); do
    run=killed-$number
    start "$run" "$ranks"
    ranks=$((5 - ranks))
    # From before the program has started to the end of the run.
    sleep_ms $((RANDOM % 2500))
    mapfile -t processes < <(ranks_of "$job")
    if (( ${#processes[@]} > 0 )); then
      pick "${processes[@]}"
      kill -9 "$picked" 2> /dev/null && done=$((done + 1))
    fi
    if ! ended 30; then
      fail "the job still runs 30 s after a rank was killed; see $log"
      end_by_force
      code=137
    fi
    nobody_left "$run" || fail "processes are left behind: $(processes_of "$run" | tr '\n' ' ')"
    [[ -z $(find "$scratch/$run" -name '*.tmp*' 2> /dev/null) ]] || torn=$((torn + 1))
    if (( code == 0 )); then
      finished "$run" && same=$((same + 1))
      runs=$((runs + 1)) number=$((number + 1))
    fi
  done
  start "$run" 2
  ended 120 || end_by_force
  finished "$run" && same=$((same + 1))
  runs=$((runs + 1))
  check "$done ranks killed, $torn in the midst of writing a file: $same of $runs runs end as undisturbed" \
    test "$same" -eq "$runs"
}

# finished RUN: whether it ended as the undisturbed one, and left nothing behind.
finished() {
  local hash
  hash=$(hash_of "$log")
  if [[ $hash != "$expected" ]]; then
    fail "$1: parameters $hash instead of $expected; see $log"
    return 1
  fi
  if [[ -n $(temporary_files "$1") ]]; then
    fail "$1: left behind: $(temporary_files "$1" | tr '\n' ' ')"
    return 1
  fi
}

stop_ranks() {
  local done=0 processes number begin seconds ranks=2
  for (( done = 0; done < stops; ++done )); do
    start "stopped-$done" "$ranks" train.steps=1000000 "dist.timeout=$timeout"
    for (( i = 0; i < 300; ++i )); do
      grep -qs '"kind":"step"' "$scratch/stopped-$done/metrics.jsonl" && break
      sleep 0.1
    done
    sleep_ms $((RANDOM % 1000))
    mapfile -t processes < <(ranks_of "$job")
    number=$((RANDOM % ranks))
    begin=$(date +%s%N)
    kill -STOP "${processes[number]}"
    if ended $((timeout + 10)); then
      seconds=$((($(date +%s%N) - begin) / 1000000))
      check "rank stopped: the job ends after $((seconds / 1000)).$((seconds / 100 % 10)) s" \
        test "$seconds" -le $(((timeout + 5) * 1000))
      check "exit code $code" test "$code" -eq 86
      check "$(grep -Eo 'ranks? [0-9, ]*waits? in collective.*(arrived|answer)' "$log" | head -1)" \
        grep -Eq "waits? in collective [0-9]+ \([a-z_]+\), rank [0-9] (has not arrived|does not answer)" "$log"
      check "the rank is named that was stopped" \
        grep -q "^tpudist: rank [0-9]* (.*process ${processes[number]}): .*stopped" "$log"
    else
      fail "the job did not end; see $log"
      end_by_force
    fi
    check "nobody is left" nobody_left "stopped-$done"
    ranks=$((5 - ranks))
  done
}

launch_ranks() {
  local done=0 same=0 number=0 processes
  for (( ; done < launches; ++number )); do
    log=$scratch/launched-$number.log
    "$program" launch --ranks 3 --launcher "mpirun --bind-to none --oversubscribe" -- train "$short" \
      --run-dir "$scratch/launched-$number" > "$log" 2>&1 &
    job=$!
    sleep_ms $((RANDOM % 2500))
    mapfile -t processes < <(ranks_of "$(ranks_of "$job")")
    if (( ${#processes[@]} > 0 )); then
      pick "${processes[@]}"
      kill -9 "$picked" 2> /dev/null && done=$((done + 1))
    fi
    ended 60 || { end_by_force; code=137; }
    [[ $code == 0 ]] && finished "launched-$number" && same=$((same + 1))
    nobody_left "launched-$number" || fail "processes are left behind: $(processes_of "launched-$number" | tr '\n' ' ')"
  done
  check "$done ranks killed under launch: $same of $number runs end as undisturbed" test "$same" -eq "$number"
}

lose_nodes() {
  local folder=$scratch/nodes number same=0 lost process ways=(processes cable)
  tests/support/nodes.sh up "$folder" 3 || return 0  # says why there are no nodes
  export OMPI_MCA_plm_rsh_agent=$folder/ssh OMPI_MCA_btl=tcp,self,vader
  for (( number = 0; number < nodes; ++number )); do
    log=$scratch/lost-$number.log
    TPUDIST=$program tests/support/nodes.sh on "$folder" node1 "$program" launch --hosts node1:1,node2:1,node3:1 \
      --ranks 3 --min-ranks 1 --patience 3 --launcher "mpirun --bind-to none" -- train "$short" \
      --run-dir "$scratch/lost-$number" dist.timeout="$timeout" > "$log" 2>&1 &
    job=$!
    sleep_ms $((RANDOM % 4000))
    lost=node$((2 + RANDOM % 2))
    if (( number % 2 )); then
      tests/support/nodes.sh cut "$folder" "$lost"
    else
      for process in $(tests/support/nodes.sh processes "$folder" "$lost"); do kill -9 "$process" 2> /dev/null || true; done
    fi
    ended 120 || { end_by_force; code=137; }
    [[ $code == 0 ]] && finished "lost-$number" && same=$((same + 1))
    tests/support/nodes.sh join "$folder" "$lost"
    echo "        $lost lost by its ${ways[number % 2]}: $(grep -o 'restart [0-9].*' "$log" | tail -1 | grep . || echo "no restart")"
    nobody_left "lost-$number" || fail "processes are left behind: $(processes_of "lost-$number" | tr '\n' ' ')"
  done
  tests/support/nodes.sh down "$folder"
  check "$number nodes lost under launch: $same of $number runs end as undisturbed" test "$same" -eq "$number"
}

make_short_data
start undisturbed 2
ended 120 || end_by_force
expected=$(hash_of "$log")
check "undisturbed: parameters $expected" test "$expected" != none
(( kills == 0 )) || kill_ranks
stop_ranks
(( launches == 0 )) || launch_ranks
(( nodes == 0 )) || lose_nodes

end_checks "${TPUDIST_KILL_DIR:-}"
