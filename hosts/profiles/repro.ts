/**
 * The default profile: low variance, and everything stated. It does not chase the lowest number:
 * no busy polling, and the offloads that ordinary users run stay on.
 */
import { sysctl, type Knob, type KnobPlace } from "../knobs.ts";
import { placementKnobs, smtKnobs, speedKnobs } from "./cpu.ts";
import { nicKnobs } from "./nic.ts";

const mebibyte = 1024 * 1024;
const socketBufferBytes = 16 * mebibyte;

/** Kept free of ephemeral ports: sidecars listen on 15000 to 15099, node ports start at 30000. */
const reservedPorts = "15000-15099,30000-32767";

/** The knobs of profile `repro`, in an order in which none undoes another. */
export function reproKnobs(place: KnobPlace): readonly Knob[] {
  return [
    ...smtKnobs(place),
    ...nicKnobs(place),
    ...namespaceKnobs,
    congestionControl(place),
    ...machineKnobs,
    ...speedKnobs(),
    ...placementKnobs(place),
    quietTimers,
  ];
}

/** Timers of Debian and Ubuntu that start maintenance in the midst of a run. */
const quietTimers: Knob = {
  id: "timers",
  scope: "manager",
  kind: "timers",
  target: [
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "fwupd-refresh.timer",
    "logrotate.timer",
    "man-db.timer",
    "motd-news.timer",
    "plocate-updatedb.timer",
    "sysstat-collect.timer",
    "systemd-tmpfiles-clean.timer",
    "ua-timer.timer",
    "update-notifier-download.timer",
    "update-notifier-motd.timer",
  ].join(" "),
  want: "none",
  why: "nothing starts by itself while measuring",
};

const namespaceKnobs: readonly Knob[] = [
  sysctl("namespace", "net.core.somaxconn", 32768, "accept bursts"),
  sysctl("namespace", "net.ipv4.tcp_max_syn_backlog", 16384, "connection bursts"),
  sysctl("namespace", "net.ipv4.ip_local_port_range", "10240 65535", "enough client ports"),
  sysctl("namespace", "net.ipv4.ip_local_reserved_ports", reservedPorts, "ports of proxies"),
  sysctl("namespace", "net.ipv4.tcp_tw_reuse", 1, "no port exhaustion when connections churn"),
  sysctl("namespace", "net.ipv4.tcp_slow_start_after_idle", 0, "pooled connections keep cwnd"),
  sysctl("namespace", "net.ipv4.tcp_no_metrics_save", 1, "no memory between runs"),
  sysctl("namespace", "net.ipv4.tcp_rmem", `4096 131072 ${socketBufferBytes}`, "fixed buffers"),
  sysctl("namespace", "net.ipv4.tcp_wmem", `4096 65536 ${socketBufferBytes}`, "fixed buffers"),
];

/**
 * By route, since the namespaced sysctl inherits the machine's choice and takes only what the
 * machine allows; and only on the data network, so that SSH keeps what it has.
 */
function congestionControl({ nic, dataNetwork }: KnobPlace): Knob {
  return {
    id: "congestion-control",
    scope: "route",
    kind: "route",
    target: `${dataNetwork} ${nic}`,
    want: "cubic",
    why: "pacing of other algorithms changes tails",
  };
}

const hugePages = "/sys/kernel/mm/transparent_hugepage";

const machineKnobs: readonly Knob[] = [
  sysctl("machine", "net.core.rmem_max", socketBufferBytes, "no lower bound than tcp_rmem"),
  sysctl("machine", "net.core.wmem_max", socketBufferBytes, "no lower bound than tcp_wmem"),
  sysctl("machine", "net.core.netdev_max_backlog", 16384, "no drops between softirq and stack"),
  sysctl("machine", "net.core.busy_poll", 0, "polling pollutes CPU increments"),
  sysctl("machine", "net.core.busy_read", 0, "polling pollutes CPU increments"),
  sysctl("machine", "net.core.rps_sock_flow_entries", 0, "no hidden steering between CPUs"),
  sysctl("machine", "net.netfilter.nf_conntrack_max", 1048576, "no refused connections"),
  sysctl("machine", "kernel.numa_balancing", 0, "no page migration while measuring"),
  sysctl("machine", "vm.zone_reclaim_mode", 0, "no reclaim while other nodes have memory"),
  sysctl("machine", "kernel.nmi_watchdog", 0, "no periodic interrupts"),
  sysctl("machine", "vm.stat_interval", 10, "fewer periodic wake-ups"),
  sysctl("machine", "kernel.timer_migration", 0, "timers stay on their CPU"),
  sysctl("machine", "vm.swappiness", 10, "working sets stay in memory"),
  {
    id: "swap",
    scope: "machine",
    kind: "swap",
    target: "/proc/swaps",
    want: "none",
    why: "no page is fetched from a disk while measuring",
  },
  {
    id: "thp-enabled",
    scope: "machine",
    kind: "choice",
    target: `${hugePages}/enabled`,
    want: "never",
    why: "programs use huge pages differently",
  },
  {
    id: "thp-defrag",
    scope: "machine",
    kind: "choice",
    target: `${hugePages}/defrag`,
    want: "never",
    why: "no stalls for compaction",
  },
  {
    id: "ksm",
    scope: "machine",
    kind: "file",
    target: "/sys/kernel/mm/ksm/run",
    want: "0",
    why: "no page scanning",
  },
];
