# What must hold before anything is changed on a host. Needs `host` and the functions of lease.sh.

require_root() {
  [ "$(id -u)" = 0 ] ||
    refuse "host $host: user $(id -un) is not root, root is needed" \
      "set user: root for $host in the testbed document"
}

require_systemd() {
  [ -d /run/systemd/system ] ||
    refuse "host $host: PID 1 is $(cat /proc/1/comm), systemd is needed" \
      "use a host that runs systemd"
}

require_address() { # nic address
  local seen
  seen=$(ip -4 -oneline address show dev "$1" 2>&1) ||
    refuse "host $host: nic $1 is not there ($seen), found $(
      cd /sys/class/net && echo *)" \
      "correct nic of $host in the testbed document" || return 1
  grep -qF " inet $2/" <<<"$seen" ||
    refuse "host $host: nic $1 has no address $2, found $(
      awk '{ printf "%s ", $4 }' <<<"$seen")" \
      "correct dataAddress or nic of $host in the testbed document"
}

require_cpus() { # cpu...
  local cpu online
  for cpu in "$@"; do
    online=/sys/devices/system/cpu/cpu$cpu/online
    # CPU 0 cannot be taken offline on most machines and then has no such file.
    [ -d "${online%/*}" ] && { [ ! -e "$online" ] || [ "$(cat "$online")" = 1 ]; } ||
      refuse "host $host: CPU $cpu is not there, online are $(
        cat /sys/devices/system/cpu/online)" \
        "correct cpus of $host in the testbed document" || return 1
  done
}

# Last of all: what an interrupted run may have left. Whatever else is in there is not ours.
sweep() {
  tuning_restore
  boot_remove
  # Units of topologies bring it with them, and leave it.
  systemctl stop ztbench.slice 2>/dev/null || true
  rm -rf /var/lib/ztbench/programs
  [ ! -L /var/lib/ztbench/bin ] || rm -f /var/lib/ztbench/bin
  rmdir --ignore-fail-on-non-empty /var/lib/ztbench/{lease,journal} 2>/dev/null || true
  # May be a mount point, which stays.
  rmdir /var/lib/ztbench 2>/dev/null || true
}
