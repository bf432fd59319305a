# Reads and writes the knobs of CPUs, memory and the service manager, as those of knobs.sh.

sys=${sys:-/sys}
proc=${proc:-/proc}
cgroup=${cgroup:-/sys/fs/cgroup}
unit_directory=${unit_directory:-/run/systemd}

# A mask as the kernel prints it, without commas and leading zeros.
plain_mask() { # mask; sets REPLY
  REPLY=${1//,/}
  while [[ $REPLY == 0?* ]]; do REPLY=${REPLY#0}; done
}

# A mask as every kernel reads it: groups of eight digits.
grouped_mask() { # mask; sets REPLY
  local rest=$1
  REPLY=
  while [ ${#rest} -gt 8 ]; do
    REPLY=,${rest: -8}$REPLY
    rest=${rest:0:-8}
  done
  REPLY=$rest$REPLY
}

# The value of many files: the one they share, or NAME=VALUE of each, separated by commas, NAME
# being what the star of the glob stands for.
read_many() { # kind glob
  local file value name='' first='' all='' same=yes
  # The star of the glob is a star on purpose.
  for file in $2; do
    [ -e "$file" ] || { echo "absent: $2"; return 1; }
    value=
    { read -r value <"$file"; } 2>/dev/null || [ -n "$value" ] ||
      { echo "unreadable: $file"; return 1; }
    [ "$1" != mask ] || { plain_mask "$value"; value=$REPLY; }
    name=${file#"${2%%\**}"}
    all+=,${name%"${2#*\*}"}=$value
    [ -n "$first" ] || first=$value
    [ "$value" = "$first" ] || same=no
  done
  if [ "$same" = yes ]; then echo "$first"; else echo "${all#,}"; fi
}

write_many() { # kind glob value
  local file pair value why failed=0
  local -a pairs=()
  if [[ $3 == *=* ]]; then
    IFS=, read -r -a pairs <<<"$3"
  else
    for file in $2; do
      file=${file#"${2%%\**}"}
      pairs+=("${file%"${2#*\*}"}=$3")
    done
  fi
  for pair in "${pairs[@]}"; do
    value=${pair#*=}
    [ "$1" != mask ] || { grouped_mask "$value"; value=$REPLY; }
    file=$2
    [[ $2 != *\** ]] || file=${2%%\**}${pair%%=*}${2#*\*}
    [ "$failed" = 1 ] || why=$(write_file "$file" "$value") || failed=1
  done
  [ "$failed" = 0 ] || { echo "${why##*: }"; return 1; }
}

# Target: a glob with one star. Files that hold one word each, e.g. one for each CPU.
read_each() { read_many word "$1"; }
write_each() { write_many word "$1" "$2"; }

# Target: a glob with at most one star. Files that hold a CPU mask each.
read_mask() { read_many mask "$1"; }
write_mask() { write_many mask "$1" "$2"; }

# Target: the file that controls second threads. Turned off by firmware, there is nothing to turn.
read_smt() {
  local state
  state=$(read_file "$1") || { echo "$state"; return 1; }
  case $state in
    forceoff) echo off ;;
    on | off) echo "$state" ;;
    *) echo "second threads cannot be turned: $state"; return 1 ;;
  esac
}
write_smt() { write_file "$1" "$2"; }

latency_unit=ztbench.latency.service

# Target: DEVICE MICROSECONDS. The value is the longest wake-up that anybody now allows. The kernel
# keeps a request only as long as the file is open, so a unit holds it.
read_latency() {
  local device=${1% *} text
  [ -e "$device" ] || { echo "absent: $device"; return 1; }
  text=$(od --address-radix=n --format=d4 --read-bytes=4 "$device" 2>&1) ||
    { echo "$text"; return 1; }
  [[ $text =~ ^[[:space:]]*(-?[0-9]+)$ ]] || { echo "$device gave nothing"; return 1; }
  echo "${BASH_REMATCH[1]}"
}
write_latency() {
  local file=$unit_directory/system/$latency_unit
  if [ "$2" != "${1#* }" ]; then
    systemctl stop "$latency_unit" 2>&1 || [ ! -e "$file" ] || return 1
    rm -f "$file"
    systemctl daemon-reload 2>&1
    return
  fi
  # systemd reads %% as one percent sign.
  local holds="exec 3>${1% *} && printf 0x%%08x $2 >&3 && exec sleep infinity"
  printf '%s\n' '[Unit]' 'Description=ztbench: keeps CPUs out of deep idle states' '[Service]' \
    Type=exec "ExecStart=/bin/bash -c '$holds'" >"$file" || return 1
  systemctl daemon-reload 2>&1 && systemctl start "$latency_unit" 2>&1 || return 1
  # It has started once bash is there, and holds the request a moment later.
  local tries=0
  until [ "$(read_latency "$1")" = "$2" ] || [ $((tries += 1)) -gt 50 ]; do sleep 0.02; done
}

# Target: the list of swap areas. The value is their names, separated by commas.
read_swap() {
  local name all='' head=yes
  [ -r "$1" ] || { echo "absent: $1"; return 1; }
  while read -r name _; do
    [ "$head" = yes ] || all+=,$name
    head=no
  done <"$1"
  all=${all#,}
  echo "${all:-none}"
}
write_swap() {
  local name
  local -a names=()
  if [ "$2" = none ]; then swapoff --all 2>&1; return; fi
  IFS=, read -r -a names <<<"$2"
  for name in "${names[@]}"; do swapon "${name//\\040/ }" 2>&1 || return 1; done
}

has_cpusets() {
  local controllers
  { read -r controllers <"$cgroup/cgroup.controllers"; } 2>/dev/null ||
    { echo "absent: $cgroup/cgroup.controllers, control groups are not unified here"; return 1; }
  [[ " $controllers " == *' cpuset '* ]] || { echo "control groups have no cpuset here"; return 1; }
}

# Target: UNIT PROPERTY. What the kernel has, since the service manager also takes what has no
# effect.
read_cpuset() {
  local file=$cgroup/${1% *}
  has_cpusets || return 1
  case ${1#* } in
    AllowedCPUs) file+=/cpuset.cpus ;;
    AllowedMemoryNodes) file+=/cpuset.mems ;;
  esac
  # It appears with the first unit that is given CPUs.
  if [ -e "$file" ]; then read_file "$file"; else echo none; fi
}
write_cpuset() {
  local unit=${1% *} property=${1#* } value=$2 directory
  directory=$unit_directory/system.control/$unit.d
  [ "$value" != none ] || value=
  [ "$unit" != ztbench.slice ] || [ -z "$value" ] || systemctl start "$unit" 2>&1 || return 1
  systemctl set-property --runtime "$unit" "$property=$value" 2>&1 || return 1
  [ -z "$value" ] || return 0
  rm -f "$directory/50-$property.conf"
  [ ! -d "$directory" ] || rmdir --ignore-fail-on-non-empty "$directory" 2>&1
  # A slice that still has another property stays until that one goes, too.
  [ "$unit" != ztbench.slice ] || [ -d "$directory" ] || systemctl stop "$unit" 2>&1
}

# Prints the memory node of a NIC, where the machine has more than one.
memory_node_of() { # nic
  local node directory count=0
  for directory in "$sys"/devices/system/node/node[0-9]*; do
    [ ! -d "$directory" ] || count=$((count + 1))
  done
  [ "$count" -gt 1 ] || { echo "this host has one memory node"; return 1; }
  node=$(read_file "$sys/class/net/$1/device/numa_node") || { echo "$node"; return 1; }
  [[ $node =~ ^[0-9]+$ ]] || { echo "$1 tells no memory node: $node"; return 1; }
  echo "$node"
}

# Target: UNIT NIC. The value is `nic-node`, or a list of other nodes.
read_memory() {
  local node now
  node=$(memory_node_of "${1#* }") || { echo "$node"; return 1; }
  now=$(read_cpuset "${1% *} AllowedMemoryNodes") || { echo "$now"; return 1; }
  if [ "$now" = "$node" ]; then echo nic-node; else echo "$now"; fi
}
write_memory() {
  local value=$2
  [ "$value" != nic-node ] || value=$(memory_node_of "${1#* }") || { echo "$value"; return 1; }
  write_cpuset "${1% *} AllowedMemoryNodes" "$value"
}

# Target: a slice. The value is how it shares its CPUs: `member`, or `root` if it has them alone.
# The kernel says why a root is none, which then differs from what was wanted.
read_partition() {
  local file=$cgroup/$1/cpuset.cpus.partition
  has_cpusets || return 1
  if [ -e "$file" ]; then read_file "$file"; else echo member; fi
}
write_partition() { write_file "$cgroup/$1/cpuset.cpus.partition" "$2"; }

# Target: names of timers. The value is UNIT=STATE of those that are there and may start something,
# separated by commas.
read_timers() {
  local line id='' load='' state='' all='' shown
  # Names are words of the command.
  # shellcheck disable=SC2086
  shown=$(systemctl show --property=Id,LoadState,ActiveState $1 2>&1) ||
    { echo "$shown"; return 1; }
  while IFS= read -r line; do
    case $line in
      Id=*) id=${line#*=} ;;
      LoadState=*) load=${line#*=} ;;
      ActiveState=active) state=active ;;
      ActiveState=*) state=inactive ;;
      '') [ "$load" != loaded ] || all+=,$id=$state; load= ;;
    esac
  done <<<"$shown"$'\n'
  all=${all#,}
  echo "${all:-none}"
}
write_timers() {
  local pair now
  local -a pairs=() names=() active=()
  if [ "$2" = none ]; then
    now=$(read_timers "$1")
    [ "$now" != none ] || return 0
    IFS=, read -r -a pairs <<<"$now"
    systemctl mask --quiet --runtime --now "${pairs[@]%%=*}" 2>&1
    return
  fi
  IFS=, read -r -a pairs <<<"$2"
  for pair in "${pairs[@]}"; do
    names+=("${pair%%=*}")
    [ "${pair#*=}" != active ] || active+=("${pair%%=*}")
  done
  systemctl unmask --quiet --runtime "${names[@]}" 2>&1 || return 1
  [ "${#active[@]}" = 0 ] || systemctl start "${active[@]}" 2>&1
}
