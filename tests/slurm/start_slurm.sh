#!/usr/bin/env bash
# Starts a Slurm of one node, for tests, as root and without systemd: munge, slurmctld and slurmd with
# PMIx, eight pretended cores, two pretended GPUs, and two partitions, of which `urgent` preempts the jobs of `batch`.
#
#   tests/slurm/start_slurm.sh FOLDER [NODES]     # prints the SLURM_CONF to export; FOLDER takes logs and state
#   tests/slurm/start_slurm.sh --stop FOLDER
#
# With NODES the Slurm has so many, of tests/support/nodes.sh in FOLDER.nodes; its commands run on node1.
#
# Needs the Debian packages slurm-wlm and munge.
set -euo pipefail
nodes=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../support/nodes.sh")

stop() {
  local files=("$1"/run/slurmd.*.pid "$1"/run/{slurmctld,munged}.pid) file number
  if [[ -e $1.nodes ]]; then  # a slurmd may have a number of its node alone
    "$nodes" down "$1.nodes"
    files=("$1/run/munged.pid")
  fi
  for file in "${files[@]}"; do
    [[ -s $file ]] || continue
    number=$(< "$file")
    kill "$number" 2> /dev/null || continue
    for _ in {1..50}; do kill -0 "$number" 2> /dev/null || break; sleep 0.1; done  # writes its state
  done
}

if [[ ${1:-} == --stop ]]; then
  stop "${2:?usage: start_slurm.sh --stop FOLDER}"
  exit 0
fi

folder=$(realpath -m "${1:?usage: start_slurm.sh FOLDER}")
count=${2:-1}
if (( count == 1 )); then
  hosts=("$(hostname -s)") address=127.0.0.1 lines="NodeName=$(hostname -s) NodeAddr=127.0.0.1"
  on() { "${@:2}"; }
else
  hosts=($(seq -f 'node%g' "$count")) address=10.77.0.1 lines="NodeName=node[1-$count]"
  on() { "$nodes" on "$folder.nodes" "$@"; }  # on NODE COMMAND...
  "$nodes" up "$folder.nodes" "$count" >&2
fi
mkdir -p "$folder"/{state,log,run}
dd if=/dev/urandom of="$folder/munge.key" bs=1 count=128 2> /dev/null
chmod 400 "$folder/munge.key"
cat > "$folder/slurm.conf" << END
ClusterName=tpudist
SlurmctldHost=${hosts[0]}($address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
CryptoType=crypto/munge
GresTypes=gpu
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
SlurmctldPort=16817
SlurmdPort=16818
SlurmdParameters=config_overrides
KillWait=30
SlurmdTimeout=30
$lines CPUs=8 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=30
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
END
# Slurm takes any character devices for GPUs, and shows jobs their numbers as CUDA_VISIBLE_DEVICES.
echo AutoDetect=off > "$folder/gres.conf"
for host in "${hosts[@]}"; do
  printf 'NodeName=%s Name=gpu Flags=nvidia_gpu_env File=%s\n' "$host" /dev/null "$host" /dev/zero >> "$folder/gres.conf"
done
export SLURM_CONF=$folder/slurm.conf
setsid munged --foreground --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" \
  --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" \
  --seed-file="$folder/run/munged.seed" --num-threads=2 > "$folder/log/munged.out" 2>&1 &
for _ in {1..50}; do [[ -S $folder/run/munge.socket ]] && break; sleep 0.1; done
if [[ ! -S $folder/run/munge.socket ]]; then  # for one: others must be able to pass all folders on its path
  cat "$folder/log/munged.out" >&2
  exit 1
fi
on "${hosts[0]}" setsid slurmctld -D -f "$SLURM_CONF" > "$folder/log/slurmctld.out" 2>&1 &
sleep 1
for host in "${hosts[@]}"; do
  on "$host" setsid slurmd -D -N "$host" -f "$SLURM_CONF" > "$folder/log/slurmd.$host.out" 2>&1 &
done
for _ in {1..100}; do
  [[ $(on "${hosts[0]}" sinfo -h -o %T:%D -p batch 2> /dev/null) == "idle:$count" ]] && { echo "$SLURM_CONF"; exit 0; }
  sleep 0.2
done
echo "slurm did not start; see $folder/log" >&2
stop "$folder"
exit 1
