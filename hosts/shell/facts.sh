# Prints raw facts of a host as blocks: a line `name:`, then the text, each line behind a tab.
# Needs `nic`. A fact that is absent says why, and never ends the program. Reads only, apart from
# the scheduling class of a process that ends at once.

fact() { # name command...
  local name=$1 text line status=0
  shift
  text=$(timeout 5 "$@" 2>&1 </dev/null) || status=$?
  if [ "$status" != 0 ] || [ -z "$text" ]; then
    read -r text <<<"$text" || true
    text="not available: ${text:-nothing printed, exit code $status}"
  fi
  printf '%s:\n' "$name"
  while IFS= read -r line; do printf '\t%s\n' "$line"; done <<<"$text"
}

# Facts that need more than one command are said to bash.
fact_of() { # name script
  fact "$1" bash -c "$2" "$1" "$nic"
}

each_file() { # name glob...
  fact_of "$1" 'for f in '"${*:2}"'; do
    [ -r "$f" ] && [ -f "$f" ] && printf "%s: %s\n" "$f" "$(<"$f")"; done; :'
}

facts() {
  fact kernel uname -srvm
  fact cmdline cat /proc/cmdline
  fact os-release cat /etc/os-release
  fact hostname uname -n
  fact boot-id cat /proc/sys/kernel/random/boot_id
  fact namespace readlink /proc/self/ns/net
  fact virtualisation bash -c 'systemd-detect-virt || true'
  fact systemd bash -c 'systemctl --version | sed -n 1p'
  facts_cpu
  facts_nic
  facts_kernel
  fact_of packages 'dpkg-query --show ca-certificates ethtool iproute2 iptables nftables systemd'
}

# Apart, since it reads every program through.
facts_programs() {
  fact_of programs 'cd /var/lib/ztbench/bin && sha256sum -- *'
}

facts_cpu() {
  fact cpu-first sed '/^$/q' /proc/cpuinfo
  fact cpu-summary lscpu
  fact cpu-online cat /sys/devices/system/cpu/online
  each_file mitigations '/sys/devices/system/cpu/vulnerabilities/*'
  each_file governor '/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor' \
    '/sys/devices/system/cpu/intel_pstate/no_turbo'
  each_file c-states '/sys/devices/system/cpu/cpu0/cpuidle/state*/name' \
    '/sys/devices/system/cpu/cpu0/cpuidle/state*/disable'
  each_file smt '/sys/devices/system/cpu/smt/*'
  each_file numa '/sys/devices/system/node/node*/cpulist' \
    "/sys/class/net/$nic/device/numa_node"
  each_file cpu-topology '/sys/devices/system/cpu/cpu*/topology/thread_siblings_list'
  fact memory cat /proc/meminfo
  fact clock-source cat /sys/devices/system/clocksource/clocksource0/current_clocksource
}

facts_nic() {
  fact nic-driver ethtool -i "$nic"
  fact nic-offloads ethtool -k "$nic"
  fact nic-rings ethtool -g "$nic"
  fact nic-coalescing ethtool -c "$nic"
  fact nic-channels ethtool -l "$nic"
  fact nic-pause ethtool -a "$nic"
  fact nic-private ethtool --show-priv-flags "$nic"
  fact nic-fec ethtool --show-fec "$nic"
  each_file nic-pcie "/sys/class/net/$nic/device/current_link_*" \
    "/sys/class/net/$nic/device/max_link_*"
  fact_of nic-pcie-control 'lspci -vv -s "$(basename "$(realpath "/sys/class/net/$1/device")")" |
    grep -E "LnkSta:|MaxPayload|MaxReadReq"'
  fact nic-link ip -details link show dev "$nic"
  fact nic-qdisc tc qdisc show dev "$nic"
  fact addresses ip -4 -oneline address show
  fact routes ip -4 route show
  # Drivers name interrupts after the NIC or after its place on the bus: its own ones are listed.
  fact_of irq-map 'while read -r irq rest; do irq=${irq%:}
    [ ! -e "/sys/class/net/$1/device/msi_irqs/$irq" ] ||
      echo "$irq $(cat "/proc/irq/$irq/effective_affinity_list") ${rest##* }"
    done </proc/interrupts'
}

facts_kernel() {
  fact_of sysctl-net 'cd /proc/sys && for f in net/core/* net/ipv4/{tcp,udp,ip,icmp}_*; do
    [ ! -d "$f" ] && value=$(<"$f") 2>/dev/null && printf "%s = %s\n" "$f" "$value"; done; :'
  fact_of sysctl-machine 'cd /proc/sys && for f in vm/{swappiness,stat_interval,zone_reclaim_mode} \
    kernel/{numa_balancing,nmi_watchdog,timer_migration,sched_rt_runtime_us,sched_autogroup_enabled}
    do [ ! -e "$f" ] || printf "%s = %s\n" "$f" "$(cat "$f" 2>&1)"; done'
  each_file huge-pages '/sys/kernel/mm/transparent_hugepage/enabled' \
    '/sys/kernel/mm/transparent_hugepage/defrag' '/sys/kernel/mm/ksm/run'
  fact_of sched-rr 'if why=$(chrt --rr 10 true 2>&1); then echo allowed; else echo "refused: $why"; fi'
  fact_of irq-time-accounting '{ zcat /proc/config.gz || cat "/boot/config-$(uname -r)"; } \
    2>/dev/null | grep IRQ_TIME_ACCOUNTING || echo "not available: the configuration is not visible"'
  fact_of cgroup 'stat --file-system --format %T /sys/fs/cgroup
    cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null; :'
}
