#!/usr/bin/env bash
# Nodes on one machine, for tests of jobs on several: network namespaces with host names of their own (node1, node2,
# ...), joined by a virtual switch. Each node has its own /tmp and /dev/shm, and, except for node1, its own process
# numbers. All other files are shared, and below /tmp this repository, the folder of TPUDIST, and the one that has FOLDER.
# Open MPI starts its daemons through FOLDER/ssh. Needs root and iproute2; exits
# with 77, and the reason, where it cannot make them.
#
#   nodes.sh up FOLDER [NODES]        makes the nodes, two if no number is given; FOLDER takes their state
#   nodes.sh on FOLDER NODE COMMAND...      runs a command on a node, e.g. node1
#   nodes.sh run FOLDER HOSTS COMMAND...    runs ranks by mpirun on node1; HOSTS as for its --host: node1:2,node2:2
#   nodes.sh ssh FOLDER NODE COMMAND...     the same from afar, as FOLDER/ssh calls it: fails while the cable is out
#   nodes.sh cut | join FOLDER NODE   takes the cable out, and puts it back
#   nodes.sh processes FOLDER NODE    prints the numbers of all processes of a node but its first
#   nodes.sh down FOLDER              ends all processes of the nodes, and removes the nodes
#
# All nodes end with their first processes, whose numbers are in FOLDER/NODE; `switch` is one, too.
set -euo pipefail
self=$(realpath "${BASH_SOURCE[0]}")
root=$(realpath "$(dirname "$self")/../..")

skip() { echo "skipped: $*"; exit 77; }

# The first process of a node: takes what ends on it (as process 1 it has to), and says when the node is ready.
# Started in the node's namespaces: first FOLDER NAME.
first() {
  local folder=$1 name=$2 fd kept=() shared
  hostname "$name"
  if [[ $name != switch ]]; then
    mount --bind "$folder/hosts" /etc/hosts
    for shared in "$(dirname "$folder")" "$folder" "$root" "$(dirname "${TPUDIST:-$root/x}")"; do
      [[ $shared != /tmp/* ]] || { exec {fd}< "$shared" && kept+=("$fd" "$shared"); }
    done
    mount -t tmpfs tmpfs /tmp
    mount -t tmpfs tmpfs /dev/shm
    set -- "${kept[@]}"
    for ((; $# > 0;)); do
      mkdir -p "$2"
      mount --no-canonicalize --bind "/proc/self/fd/$1" "$2"
      shift 2
    done
  fi
  ip link set lo up
  echo > "$folder/$name.ready"
  trap 'exit 0' TERM
  while true; do sleep 1000 & wait $! || true; done
}

# start FOLDER NAME [OPTION of unshare ...] starts the first process of a node.
start() {
  local folder=$1 name=$2 process
  shift 2
  rm -f "$folder/$name.ready"
  setsid unshare --net --uts --ipc --mount "$@" "$self" first "$folder" "$name" > "$folder/$name.log" 2>&1 < /dev/null &
  process=$!
  for _ in {1..100}; do
    [[ ! -e $folder/$name.ready ]] || break
    kill -0 "$process" 2> /dev/null || break
    sleep 0.05
  done
  [[ -e $folder/$name.ready ]] || skip "$name cannot be made: $(tail -n 1 "$folder/$name.log")"
  [[ $* != *--fork* ]] || process=$(< "/proc/$process/task/$process/children")
  echo "${process// /}" > "$folder/$name"
}

up() {
  local folder nodes=${2:-2} node switch
  folder=$(realpath -m "$1")
  (( EUID == 0 )) || skip "nodes need root"
  command -v ip > /dev/null || skip "nodes need the program ip (Debian package iproute2)"
  mkdir -p "$folder"
  trap "(( \$? == 0 )) || down '$folder'" EXIT
  printf '127.0.0.1 localhost\n' > "$folder/hosts"
  for ((node = 1; node <= nodes; ++node)); do echo "10.77.0.$node node$node" >> "$folder/hosts"; done
  start "$folder" switch
  switch=$(< "$folder/switch")
  net "$folder" switch ip link add switch type bridge || skip "the kernel has no bridge"
  net "$folder" switch ip link set switch up
  for ((node = 1; node <= nodes; ++node)); do
    if (( node == 1 )); then start "$folder" node1; else start "$folder" "node$node" --pid --fork --mount-proc; fi
    net "$folder" "node$node" ip link add eth0 type veth peer name "node$node" netns "$switch"
    net "$folder" "node$node" ip addr add "10.77.0.$node/24" dev eth0
    net "$folder" "node$node" ip link set eth0 up
    net "$folder" switch ip link set "node$node" master switch up
  done
  printf '#!/bin/sh\n# As ssh: [OPTION ...] HOST COMMAND...\nwhile [ "${1#-}" != "$1" ]; do shift; done\n%s\n' \
    "host=\$1; shift; exec '$self' ssh '$folder' \"\$host\" sh -c \"\$*\"" > "$folder/ssh"
  chmod +x "$folder/ssh"
}

net() { nsenter -n -t "$(< "$1/$2")" -- "${@:3}"; }  # net FOLDER NODE COMMAND... : with the network of a node alone
on() { nsenter -n -u -i -m -p --wd="$PWD" -t "$(< "$1/$2")" -- "${@:3}"; }

ssh() {
  net "$1" switch ip link show dev "$2" up | grep -q . || { echo "$2 does not answer" >&2; exit 255; }
  on "$@"
}

run() {
  local folder=$1 hosts=$2
  shift 2
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$folder/ssh
  export OMPI_MCA_btl=tcp,self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
  on "$folder" node1 mpirun --host "$hosts" --bind-to none  "$@"
}

processes() {
  local first net process
  first=$(< "$1/$2")
  net=$(readlink "/proc/$first/ns/net")
  for process in /proc/[0-9]*; do
    [[ $(readlink "$process/ns/net" 2> /dev/null) != "$net" || ${process#/proc/} == "$first" ]] || echo "${process#/proc/}"
  done
}

down() {
  local node process
  for node in "$1"/switch "$1"/node?; do
    [[ -s $node ]] || continue
    for process in $(processes "$1" "$(basename "$node")") $(< "$node"); do kill -9 "$process" 2> /dev/null || true; done
    rm -f "$node" "$node.ready"
  done
}

command=${1:-}
shift || true
case $command in
  up | on | ssh | run | processes | first) "$command" "$@" ;;
  cut) net "$1" switch ip link set "$2" down ;;
  join) net "$1" switch ip link set "$2" up ;;
  down) down "$(realpath "$1")" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$self" >&2; exit 2 ;;
esac
