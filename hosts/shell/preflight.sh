# Compares a host with what the testbed says of it, before anything is turned, and in phase `host`
# before packages come. Needs `host`, the functions of lease.sh and knobs.sh, and `checks`, which
# prints a line for each: phase, id, probe, argument, comparison, want, next step; `-` for no
# argument.
#
# A probe prints what it sees, `none` for an empty list. It fails, and says why, where that cannot
# be seen: a lab has no hardware of its own to look at, and metal must have it.

sys=${sys:-/sys}
proc=${proc:-/proc}
modules=${modules:-/lib/modules}

# Prints an own file of the NIC's device, or says what it is instead.
see_device() { # nic file
  [ -d "$sys/class/net/$1" ] || { echo "there is no $1"; return 1; }
  [ -d "$sys/class/net/$1/device" ] || { echo "$1 is no hardware"; return 1; }
  read_file "$sys/class/net/$1/device/$2"
}

see_value() { echo "$1"; }

see_nic() { # nic
  local all
  [ ! -d "$sys/class/net/$1" ] || { echo "$1"; return 0; }
  all=$(cd "$sys/class/net" && echo *)
  echo "$1 is not there (found $all)"
}

see_link() { read_file "$sys/class/net/$1/operstate"; }

see_link_speed() {
  see_device "$1" uevent >/dev/null || { see_device "$1" uevent; return 1; }
  local speed duplex
  speed=$(read_file "$sys/class/net/$1/speed") || { echo "$speed"; return 1; }
  duplex=$(read_file "$sys/class/net/$1/duplex") || { echo "$duplex"; return 1; }
  echo "$speed $duplex"
}

see_mtu() { read_file "$sys/class/net/$1/mtu"; }
see_pcie_speed() { see_device "$1" current_link_speed; }
see_pcie_lanes() { see_device "$1" current_link_width; }

# Argument: NIC and NAME=CPUS of each set. Prints the CPUs that are not on the NIC's node; a machine
# with one node tells -1.
see_off_node() {
  local nic=${1%% *} node own all='' set cpu
  local -a sets=()
  read -r -a sets <<<"${1#"$nic"}"
  node=$(see_device "$nic" numa_node) || { echo "$node"; return 1; }
  [ "$node" != -1 ] || { echo none; return 0; }
  own=$(read_file "$sys/devices/system/node/node$node/cpulist") || { echo "$own"; return 1; }
  expand "$own"
  own=" $REPLY "
  for set in "${sets[@]}"; do
    expand "${set#*=}"
    for cpu in $REPLY; do [[ $own == *" $cpu "* ]] || all+=", ${set%%=*} $cpu"; done
  done
  all=${all#, }
  echo "${all:-none}"
}

# Argument: a CPU list. Prints those that are not the first thread of their core.
see_second_threads() {
  local cpu siblings all='' cpus=$sys/devices/system/cpu
  [ "$1" != - ] || { echo none; return 0; }
  expand "$1"
  for cpu in $REPLY; do
    # Of a CPU that is offline nothing is told, and it is refused for that elsewhere.
    siblings=$(read_file "$cpus/cpu$cpu/topology/thread_siblings_list") || continue
    [ "${siblings%%[,-]*}" = "$cpu" ] || all+=,$cpu
  done
  all=${all#,}
  echo "${all:-none}"
}

expand() { # cpu-list; sets REPLY to its numbers
  local range first
  REPLY=
  for range in ${1//,/ }; do
    for ((first = ${range%-*}; first <= ${range#*-}; first++)); do REPLY+=" $first"; done
  done
}

see_clock() {
  ! in_container || { echo 'the clock is that of the machine around this container'; return 1; }
  timeout 5 timedatectl show --property=NTPSynchronized --value 2>&1
}

# Argument: MODULE:SYMBOL words. Prints the modules that the kernel neither has nor can load.
see_missing_modules() {
  local word name symbol release config='' builtin='' all=''
  release=$(uname -r)
  builtin=$(cat "$modules/$release/modules.builtin" 2>/dev/null) || true
  config=$(zcat "$proc/config.gz" 2>/dev/null || cat "/boot/config-$release" 2>/dev/null) || true
  for word in $1; do
    name=${word%%:*} symbol=${word#*:}
    [ ! -d "$sys/module/$name" ] || continue
    [[ $builtin != */"$name".ko* ]] || continue
    [[ $'\n'$config != *$'\n'CONFIG_$symbol=y* ]] || continue
    ! modprobe --dry-run --quiet "$name" 2>/dev/null || continue
    all+=,$name
  done
  all=${all#,}
  echo "${all:-none}"
}

not_tracked='not tracked'

# Free entries of connection tracking; without it nothing is tracked, and none can be missing.
see_free_connections() {
  local most count directory=$proc/sys/net/netfilter
  [ -e "$directory/nf_conntrack_max" ] || { echo "$not_tracked"; return 0; }
  most=$(read_file "$directory/nf_conntrack_max") || { echo "$most"; return 1; }
  count=$(read_file "$directory/nf_conntrack_count") || { echo "$count"; return 1; }
  echo $((most - count))
}

see_free_mebibytes() { # directory
  local text
  text=$(df --output=avail --block-size=MiB "$1" 2>&1) || { echo "${text//$'\n'/ }"; return 1; }
  text=${text##*$'\n'}
  text=${text// /}
  echo "${text%MiB}"
}

# Argument: names of services. Prints those that run.
see_running() {
  local name all='' states
  local -a names=()
  read -r -a names <<<"$1"
  states=$(systemctl is-active "${names[@]}" 2>/dev/null) || true
  while read -r name; do
    [ "$name" != active ] || all+=,${names[0]}
    names=("${names[@]:1}")
  done <<<"$states"
  all=${all#,}
  echo "${all:-none}"
}

# Argument: NIC's ADDRESS, MTU and NAME=ADDRESS of each peer. Prints peers that do not answer a
# packet of that size that must not be cut. Repeated, since a peer's link may just be set up.
see_cut_paths() {
  local own=${1%% *} rest=${1#* } peer all='' index
  local -a peers=() pids=()
  read -r -a peers <<<"${rest#* }"
  command -v ping >/dev/null || { echo 'ping is missing'; return 1; }
  for peer in "${peers[@]}"; do
    ping -n -q -M do -s $((${rest%% *} - 28)) -c 1 -w 8 -I "$own" "${peer#*=}" >/dev/null 2>&1 &
    pids+=($!)
  done
  for index in "${!pids[@]}"; do
    wait "${pids[index]}" || all+=", ${peers[index]%%=*} (${peers[index]#*=})"
  done
  all=${all#, }
  echo "${all:-none}"
}

is_as_wanted() { # comparison seen want
  case $1 in
    any) return 0 ;;
    equal) [ "$2" = "$3" ] ;;
    # Numbers are compared without what stands behind them: units, and tenths.
    at-least)
      [ "$2" = "$not_tracked" ] ||
        { [[ $2 =~ ^[0-9] ]] && [ "${2%%[!0-9]*}" -ge "${3%%[!0-9]*}" ]; } ;;
  esac
}

# Prints for each check of a phase: id, want, seen, verdict. Refuses the host if one is not met.
preflight() { # phase
  local phase id probe argument comparison want next seen verdict
  local -a rows=() refusals=()
  while IFS=$tab read -r phase id probe argument comparison want next; do
    [ "$phase" = "$1" ] || continue
    if ! seen=$("see_$probe" "$argument"); then
      seen="not available: $seen"
      if [ "$comparison" = any ]; then verdict='not available here'; else verdict=refused; fi
    elif is_as_wanted "$comparison" "$seen" "$want"; then
      verdict=ok
    else
      verdict=refused
    fi
    rows+=("$id$tab$want$tab$seen$tab$verdict")
    [ "$verdict" != refused ] ||
      refusals+=("host $host: $id ${seen}, wanted $want"$'\n'"  next: ${next//HOST/$host}")
  done < <(checks)
  printf '%s\n' "${rows[@]}"
  [ "${#refusals[@]}" -gt 0 ] || return 0
  {
    printf '%s\n' "${refusals[@]}"
    printf 'host %s, wanted and seen:\n' "$host"
    for seen in "${rows[@]}"; do
      IFS=$tab read -r id want seen verdict <<<"$seen"
      printf '  %-20s  %-22s  %-30s  %s\n' "$id" "$want" "$seen" "$verdict"
    done
  } >&2
  return 1
}
