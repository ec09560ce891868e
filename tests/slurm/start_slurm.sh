#!/usr/bin/env bash
# Starts a Slurm of one node, for tests, as root and without systemd: munge, slurmctld and slurmd with
# PMIx, eight pretended cores, two pretended GPUs, and two partitions, of which `urgent` preempts the jobs of `batch`.
#
#   tests/slurm/start_slurm.sh FOLDER     # prints the SLURM_CONF to export; FOLDER takes logs and state
#   tests/slurm/start_slurm.sh --stop FOLDER
#
# Needs the Debian packages slurm-wlm and munge.
set -euo pipefail

stop() {
  local program number
  for program in slurmd slurmctld munged; do
    [[ -s $1/run/$program.pid ]] || continue
    number=$(< "$1/run/$program.pid")
    kill "$number" 2> /dev/null || continue
    for _ in {1..50}; do kill -0 "$number" 2> /dev/null || break; sleep 0.1; done  # writes its state
  done
}

if [[ ${1:-} == --stop ]]; then
  stop "${2:?usage: start_slurm.sh --stop FOLDER}"
  exit 0
fi

folder=$(realpath -m "${1:?usage: start_slurm.sh FOLDER}")
host=$(hostname -s)
mkdir -p "$folder"/{spool,state,log,run}
dd if=/dev/urandom of="$folder/munge.key" bs=1 count=128 2> /dev/null
chmod 400 "$folder/munge.key"
cat > "$folder/slurm.conf" << END
ClusterName=tpudist
SlurmctldHost=$host(127.0.0.1)
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
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
SlurmdParameters=config_overrides
KillWait=30
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=30
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
END
# Slurm takes any character devices for GPUs, and shows jobs their numbers as CUDA_VISIBLE_DEVICES.
printf 'AutoDetect=off\nNodeName=%s Name=gpu Flags=nvidia_gpu_env File=%s\n' "$host" /dev/null "$host" /dev/zero \
  > "$folder/gres.conf"
export SLURM_CONF=$folder/slurm.conf
setsid munged --foreground --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" \
  --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" \
  --seed-file="$folder/run/munged.seed" --num-threads=2 > "$folder/log/munged.out" 2>&1 &
for _ in {1..50}; do [[ -S $folder/run/munge.socket ]] && break; sleep 0.1; done
if [[ ! -S $folder/run/munge.socket ]]; then  # for one: others must be able to pass all folders on its path
  cat "$folder/log/munged.out" >&2
  exit 1
fi
setsid slurmctld -D -f "$SLURM_CONF" > "$folder/log/slurmctld.out" 2>&1 &
sleep 1
setsid slurmd -D -N "$host" -f "$SLURM_CONF" > "$folder/log/slurmd.out" 2>&1 &
for _ in {1..100}; do
  [[ $(sinfo -h -o %T -p batch 2> /dev/null) == idle ]] && { echo "$SLURM_CONF"; exit 0; }
  sleep 0.2
done
echo "slurm did not start; see $folder/log" >&2
stop "$folder"
exit 1
