# shellcheck shell=bash
# Puts a payload on a host and takes it off again. Expects host, root, digest, table,
# unit_directory, listen_seconds, lock_seconds and the arrays units and ports. A table is family
# and name, two words on purpose. Payloads with steps define undo_steps and steps_left anew.
# Few processes are started, since each costs about as much as the work itself.

fail() { # MESSAGE NEXT-STEP [DETAILS]
  printf '%s: %s [testbed]\n' "$host" "$1" >&2
  [ -z "${3:-}" ] || printf '    %s\n' "${3//$'\n'/$'\n'    }" >&2
  printf '  next: %s\n' "$2" >&2
  exit 1
}

# The kernel's own table, read without starting a process.
is_listening() { # PORT
  local hex tcp='' tcp6=''
  printf -v hex %04X "$1"
  read -r -d '' tcp </proc/net/tcp || :
  [ ! -e /proc/net/tcp6 ] || read -r -d '' tcp6 </proc/net/tcp6 || :
  [[ $tcp == *":$hex 00000000:0000 0A "* ]] ||
    [[ $tcp6 == *":$hex 00000000000000000000000000000000:0000 0A "* ]]
}

# Whether both properties have these values for every unit.
units_show() { # PROPERTY=VALUE PROPERTY=VALUE
  local line seen=''
  [ "${#units[@]}" -gt 0 ] || return 0
  while read -r line; do
    [[ $line == "$1" || $line == "$2" || -z $line ]] || return 1
    seen+=$line
  done < <(systemctl show --property="${1%%=*},${2%%=*}" "${units[@]}")
  [ -n "$seen" ]
}

are_gone() { units_show LoadState=not-found ActiveState=inactive; }

# The service manager finds new units by itself. Telling it to read all of them again takes longer
# than everything else here, so that is done only if it is needed.
load_units() {
  units_show LoadState=loaded NeedDaemonReload=no || systemctl daemon-reload
}

undo_steps() { :; }
steps_left() { :; }

# What steps have found out for other payloads.
print_result() { [ ! -e "$root/printed" ] || cat "$root/printed"; }

# Says what is on the host, for whoever has to take it off without knowing it.
manifest() {
  printf 'digest %s\n' "$digest"
  [ -z "$table" ] || printf 'table %s\n' "$table"
  [ "${#units[@]}" -eq 0 ] || printf 'unit %s\n' "${units[@]}"
  [ "${#ports[@]}" -eq 0 ] || printf 'port %s\n' "${ports[@]}"
}

# Two scripts at once happen if an engine was interrupted: its script goes on. The directory is
# locked rather than a file, which would be left behind.
alone() {
  exec {lock}</run
  flock --wait "$lock_seconds" "$lock" ||
    fail "payload: another one is being put on or taken off for $lock_seconds s" 'try again'
}

already_running() {
  local port found=''
  [ -e "$root/payload" ] || return 1
  read -r _ found <"$root/payload" || :
  [ "$found" = "$digest" ] || return 1
  for port in "${ports[@]}"; do is_listening "$port" || return 1; done
  units_show LoadState=loaded ActiveState=active
}

check_free() {
  local port who
  for port in "${ports[@]}"; do
    is_listening "$port" || continue
    who=$(ss -Hltnp "sport = :$port")
    if [[ $who =~ \(\"([^\"]+)\",pid=([0-9]+) ]]; then
      who="${BASH_REMATCH[1]} (pid ${BASH_REMATCH[2]})"
    else
      who='a process that ss does not name'
    fi
    fail "port $port: already in use by $who, it must be free" "stop it: ss -ltnp 'sport = :$port'"
  done
  if [ -n "$table" ] && nft list table $table >/dev/null 2>&1; then
    fail "nftables table $table: there already, not made by this deployment" \
      "look at it, then: nft delete table $table"
  fi
}

start() { # UNIT PORT...
  local unit=$1 port waiting deadline
  shift
  systemctl start "$unit" 2>/dev/null || report_unit "$unit" 'failed to start'
  deadline=$((SECONDS + listen_seconds))
  while :; do
    waiting=''
    for port; do is_listening "$port" || waiting=$port; done
    [ -n "$waiting" ] || break
    systemctl is-active --quiet "$unit" || report_unit "$unit" 'stopped right after its start'
    ((SECONDS <= deadline)) ||
      report_unit "$unit" "does not listen on port $waiting after $listen_seconds s"
    sleep 0.02
  done
  [ $# -gt 0 ] || systemctl is-active --quiet "$unit" ||
    report_unit "$unit" 'stopped right after its start'
}

report_unit() { # UNIT PROBLEM
  local invocation lines
  journalctl --sync 2>/dev/null || :
  invocation=$(systemctl show --property=InvocationID --value "$1")
  # Of this start only: lines of an earlier one would mislead.
  lines=$(journalctl --no-pager --output=cat --lines=15 \
    "_SYSTEMD_INVOCATION_ID=$invocation" + "INVOCATION_ID=$invocation" 2>&1 || :)
  fail "unit $1: $2, its last lines:" \
    'mend what they say, then deploy again; what was made on this host is removed' "$lines"
}

undo() { # STATUS
  trap - EXIT
  (remove_all) || echo "$host: could not take everything off again, see above" >&2
  exit "$1"
}

remove_all() {
  local unit index port line left=() had_units='' reversed=()
  for ((index = ${#units[@]} - 1; index >= 0; index--)); do
    unit=${units[index]}
    reversed+=("$unit")
    [ ! -e "$unit_directory/$unit" ] || had_units=yes
  done
  if [ -n "$had_units" ] || ! are_gone; then
    # Errors show in the checks below, which are what counts.
    systemctl stop "${reversed[@]}" 2>/dev/null || :
    rm -f "${reversed[@]/#/$unit_directory/}"
  fi
  if ! are_gone; then
    systemctl reset-failed "${units[@]}" 2>/dev/null || :
    systemctl daemon-reload
    are_gone || left+=("one of the units ${units[*]}")
  fi
  [ -z "$table" ] || nft delete table $table 2>/dev/null || :
  undo_steps || :
  if [ -e "$root" ]; then
    rm -rf "$root"
    rmdir --ignore-fail-on-non-empty "${root%/*}"
  fi
  if [ -n "$had_units" ]; then
    for port in "${ports[@]}"; do
      ! is_listening "$port" || left+=("a listener on port $port")
    done
  fi
  [ -z "$table" ] || ! nft list table $table >/dev/null 2>&1 || left+=("nftables table $table")
  [ ! -e "$root" ] || left+=("$root")
  while read -r line; do left+=("$line"); done < <(steps_left)
  [ "${#left[@]}" -eq 0 ] ||
    fail "removal: left behind: $(IFS=,; echo "${left[*]}")" 'run it again, or remove them by hand'
}

# Takes off whatever an interrupted or older attempt left in the root, by its own manifest.
sweep_payload() { # ROOT
  local key value
  root=$1 units=() ports=() table=''
  [ -e "$root" ] || return 0
  undo_steps() { :; }
  steps_left() { :; }
  # shellcheck disable=SC1091
  [ ! -e "$root/steps" ] || . "$root/steps"
  if [ -e "$root/payload" ]; then
    while read -r key value; do
      case $key in
        table) table=$value ;;
        unit) units+=("$value") ;;
        port) ports+=("$value") ;;
      esac
    done <"$root/payload"
  fi
  remove_all
}
