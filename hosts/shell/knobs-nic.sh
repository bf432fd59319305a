# Reads and writes the knobs of a NIC, as those of knobs.sh. What ethtool prints is remembered until
# something is changed: one process for all knobs of a kind.

sys=${sys:-/sys}
proc=${proc:-/proc}
declare -A ethtool_printed=()
declare -A ethtool_failed=()

# The options of ethtool that show a kind of knob.
declare -A ethtool_options=(
  [offload]=-k [ring]=-g [coalesce]=-c [channels]=-l [pause]=-a [private]=--show-priv-flags
)

# Readers run in subshells, which cannot remember: called by whoever calls them.
remember() { # kind target
  local option=${ethtool_options[$1]:-} key
  key="$option ${2% *}"
  [ -n "$option" ] && [ -z "${ethtool_printed[$key]+x}" ] || return 0
  ethtool_failed[$key]=
  ethtool_printed[$key]=$(ethtool "$option" "${2% *}" 2>&1) || ethtool_failed[$key]=yes
}

forget() {
  ethtool_printed=()
  ethtool_failed=()
}

# Prints the value of the last line that begins with `LABEL:`, a regular expression; what can be set
# at most is printed before what is set. Fails and says why.
ethtool_value() { # kind target label
  local key="${ethtool_options[$1]} ${2% *}" line value=''
  local pattern="^[[:space:]]*$3[[:space:]]*:[[:space:]]*([^[:space:]]+)"
  remember "$1" "$2"
  if [ -n "${ethtool_failed[$key]}" ]; then
    line=${ethtool_printed[$key]//$'\n'/ }
    echo "${line:-ethtool is missing}"
    return 1
  fi
  while IFS= read -r line; do
    [[ ! $line =~ $pattern ]] || value=${BASH_REMATCH[1]}
  done <<<"${ethtool_printed[$key]}"
  if [ -z "$value" ] || [ "$value" = n/a ]; then
    echo "${2% *} has no ${2#* }"
    return 1
  fi
  echo "$value"
}

# Target: NIC FEATURE, as ethtool -k prints them.
read_offload() { ethtool_value offload "$1" "${1#* }"; }
write_offload() { ethtool -K "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Target: NIC rx|tx. The value is a number of descriptors.
read_ring() {
  local name=${1#* }
  ethtool_value ring "$1" "${name^^}"
}
write_ring() { ethtool -G "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Target: NIC combined. The value is a number of queues.
read_channels() {
  local name=${1#* }
  ethtool_value channels "$1" "${name^}"
}
write_channels() { ethtool -L "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Target: NIC PARAMETER, as ethtool -c prints it; `adaptive-rx` and `adaptive-tx` share a line.
read_coalesce() {
  local label=${1#* }
  case $label in
    adaptive-rx) label='Adaptive RX' ;;
    adaptive-tx) label='Adaptive RX: +[^ ]+ +TX' ;;
  esac
  ethtool_value coalesce "$1" "$label"
}
write_coalesce() { ethtool -C "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Target: NIC rx|tx|autoneg.
read_pause() {
  local name=${1#* }
  [ "$name" = autoneg ] && name=Autonegotiate || name=${name^^}
  ethtool_value pause "$1" "$name"
}
write_pause() { ethtool -A "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Target: NIC FLAG of the driver.
read_private() { ethtool_value private "$1" "${1#* }"; }
write_private() { ethtool --set-priv-flags "${1% *}" "${1#* }" "$2" 2>&1 >/dev/null; }

# Prints the number of the interrupt of a queue: one of the NIC's own, whose name ends with the
# number of the queue. Drivers write comp3@pci:ADDRESS, NIC-3, NIC-TxRx-3 or the like.
irq_of() { # nic queue
  local directory=$sys/class/net/$1/device/msi_irqs irq name
  [ -d "$directory" ] || { echo "$1 has no interrupts of its own"; return 1; }
  while read -r irq name; do
    irq=${irq%:}
    name=${name##* }
    [[ $irq =~ ^[0-9]+$ && -e $directory/$irq ]] || continue
    [[ $name =~ (comp|-)$2(@[^[:space:]]*)?$ ]] || continue
    echo "$irq"
    return 0
  done <"$proc/interrupts"
  echo "$1 has no interrupt of queue $2"
  return 1
}

# Target: NIC QUEUE. The value is a list of CPUs.
read_irq() {
  local irq
  irq=$(irq_of "${1% *}" "${1#* }") || { echo "$irq"; return 1; }
  read_file "$proc/irq/$irq/smp_affinity_list"
}
write_irq() {
  local irq
  irq=$(irq_of "${1% *}" "${1#* }") || { echo "$irq"; return 1; }
  write_file "$proc/irq/$irq/smp_affinity_list" "$2"
}

# The handle of the disciplines that ztbench chose: the kernel gives its own ones 0 and 8000 up.
qdisc_handle=7a74

# Target: NIC. The value is the discipline of each queue; of queues that differ, each kind. A root
# that somebody else chose is printed with its handle.
read_qdisc() {
  local shown kind handle place rest top='' parent='' kinds=''
  shown=$(tc qdisc show dev "$1" 2>&1) || { echo "${shown//$'\n'/ }"; return 1; }
  while read -r _ kind handle place rest; do
    if [ "$place" = root ]; then
      top=$kind parent=$handle
      [ "$kind" = mq ] || kinds=$kind
    fi
  done <<<"$shown"
  # Links in memory and those on top of others have none: there is nothing to put in order.
  [ "${top:-noqueue}" != noqueue ] || { echo "$1 has no queue of its own"; return 1; }
  if [ "$top" = mq ]; then
    # Roots of the kernel's own have handle 0, which is left out in front of the number of a queue.
    while read -r _ kind _ place rest; do
      [ "$place" = parent ] && [[ $rest == "${parent#0}"* ]] || continue
      [[ " $kinds " == *" $kind "* ]] || kinds+=${kinds:+ }$kind
    done <<<"$shown"
  fi
  case $parent in
    0: | "$qdisc_handle:") echo "${kinds:-$top}" ;;
    *) echo "${kinds:-$top} $parent" ;;
  esac
}

# Without ours the NIC has what the kernel gives it, which is what was there before. What somebody
# else chose is left: its parameters could not be put back to the letter.
write_qdisc() {
  local now shown queue number
  now=$(read_qdisc "$1") || { echo "$now"; return 1; }
  [[ $now != *: ]] || { echo "chosen by somebody else: tc qdisc show dev $1"; return 1; }
  shown=$(tc qdisc show dev "$1" 2>&1)
  [[ $shown != *" $qdisc_handle: root"* ]] || tc qdisc delete dev "$1" root 2>&1 || return 1
  [ "$(read_qdisc "$1")" != "$2" ] || return 0
  shown=$(tc qdisc show dev "$1" 2>&1)
  if [[ ! $shown =~ qdisc\ mq\ 0:\ (dev\ [^ ]+\ )?root ]]; then
    tc qdisc replace dev "$1" root handle "$qdisc_handle:" "$2" 2>&1
    return
  fi
  tc qdisc replace dev "$1" root handle "$qdisc_handle:" mq 2>&1 || return 1
  for queue in "$sys/class/net/$1/queues"/tx-*; do
    [ -e "$queue" ] || { echo "absent: $queue"; return 1; }
    printf -v number %x $((${queue##*-} + 1))
    tc qdisc replace dev "$1" parent "$qdisc_handle:$number" "$2" 2>&1 || return 1
  done
}
