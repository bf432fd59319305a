/** What a host must be like before it is prepared: the preflight as data, by class of testbed. */
import { formatCpuList, parseCpuList } from "../contracts/cpu-list.ts";
import { type Hardware, hardwareSchema, type Host, type Testbed } from "../contracts/testbed.ts";

/** `any`: told, but nothing is demanded, e.g. of the hardware of a lab. */
export type Comparison = "equal" | "at-least" | "any";

export type Check = {
  /** `path`: what needs packages and the address of the NIC; `host`: what comes before all else. */
  readonly phase: "host" | "path";
  readonly id: string;
  /** Bash function `see_PROBE` of `shell/preflight.sh`. */
  readonly probe: string;
  readonly argument: string;
  readonly comparison: Comparison;
  readonly want: string;
  /** What to do if it is not so; `HOST` is replaced by the name of the host. */
  readonly next: string;
};

/** Bounds that follow from the class of a testbed, not from its hardware. */
const bounds = {
  lab: { freeMebibytes: 64, freeConnections: 1024 },
  metal: { freeMebibytes: 20 * 1024, freeConnections: 65_536 },
} as const;

/** Who else turns what ztbench turns. */
const owners = [
  "tuned",
  "irqbalance",
  "ksmtuned",
  "numad",
  "power-profiles-daemon",
  "thermald",
  "tlp",
] as const;

/** Kernel modules that pods need, with the symbol of the kernel's configuration. */
const podModules = {
  br_netfilter: "BRIDGE_NETFILTER",
  ip_set: "IP_SET",
  nf_conntrack: "NF_CONNTRACK",
  nf_nat: "NF_NAT",
  overlay: "OVERLAY_FS",
  veth: "VETH",
  xt_MASQUERADE: "NETFILTER_XT_TARGET_MASQUERADE",
  xt_REDIRECT: "NETFILTER_XT_TARGET_REDIRECT",
  xt_addrtype: "NETFILTER_XT_MATCH_ADDRTYPE",
  xt_comment: "NETFILTER_XT_MATCH_COMMENT",
  xt_conntrack: "NETFILTER_XT_MATCH_CONNTRACK",
  xt_mark: "NETFILTER_XT_MATCH_MARK",
  xt_multiport: "NETFILTER_XT_MATCH_MULTIPORT",
  xt_set: "NETFILTER_XT_SET",
  xt_statistic: "NETFILTER_XT_MATCH_STATISTIC",
} as const;

const correct = "correct the testbed document, or HOST:";

/** All checks of a host, in the order in which they are made. */
export function checksOf(testbed: Testbed, host: Host): readonly Check[] {
  const hardware = testbed.hardware ?? hardwareSchema.parse({});
  const { mtu } = hardware;
  return [
    ...nicChecks(host, mtu),
    ...hardwareChecks(host, hardware).map((check) => demandedOf(testbed, check)),
    ...(testbed.clusterKind === "none" ? [] : [moduleCheck()]),
    ...roomChecks(bounds[testbed.class]),
    {
      phase: "host",
      id: "foreign-owners",
      probe: "running",
      argument: owners.join(" "),
      comparison: "equal",
      want: "none",
      next: "on HOST: systemctl disable --now the services named; two owners undo each other",
    },
    pathCheck(testbed, host, mtu),
  ];
}

/** A lab has no hardware of its own: what can be seen of it is told, and nothing is demanded. */
function demandedOf(testbed: Testbed, check: Check): Check {
  return testbed.class === "metal" ? check : { ...check, comparison: "any", want: "any" };
}

function nicChecks({ nic }: Host, mtu: number): Check[] {
  const common = { phase: "host", argument: nic, comparison: "equal" } as const;
  return [
    {
      ...common,
      id: "nic",
      probe: "nic",
      want: nic,
      next: "correct nic of HOST in the testbed document",
    },
    {
      ...common,
      id: "link",
      probe: "link",
      want: "up",
      next: `on HOST: ip link set ${nic} up; then look at cable and switch`,
    },
    {
      ...common,
      id: "mtu",
      probe: "mtu",
      want: String(mtu),
      next: `${correct} ip link set ${nic} mtu ${mtu}`,
    },
  ];
}

function hardwareChecks({ nic, cpus }: Host, hardware: Hardware): Check[] {
  const common = { phase: "host", argument: nic, comparison: "equal" } as const;
  const unset = Object.entries(cpus).flatMap(([name, list]) => (list === "" ? [name] : []));
  const near = (["irq", "load", "proxy", "service"] as const).flatMap((name) =>
    cpus[name] === "" ? [] : [`${name}=${formatCpuList(parseCpuList(cpus[name]))}`],
  );
  const busy = [cpus.irq, cpus.load, cpus.proxy, cpus.service].flatMap(parseCpuList);
  return [
    {
      ...common,
      id: "link-speed",
      probe: "link_speed",
      want: `${hardware.linkSpeedMbps} full`,
      next: `${correct} look at NIC, cable and switch port: ethtool ${nic}`,
    },
    {
      ...common,
      id: "pcie-speed",
      probe: "pcie_speed",
      comparison: "at-least",
      want: `${hardware.pcieGts} GT/s`,
      next: `${correct} put the NIC into a faster slot: lspci -vv tells LnkCap and LnkSta`,
    },
    {
      ...common,
      id: "pcie-lanes",
      probe: "pcie_lanes",
      comparison: "at-least",
      want: String(hardware.pcieLanes),
      next: `${correct} put the NIC into a wider slot: lspci -vv tells LnkCap and LnkSta`,
    },
    {
      ...common,
      id: "cpu-sets-unset",
      probe: "value",
      argument: unset.join(" ") || "none",
      want: "none",
      next: "state these cpus of HOST: ./ztbench cpus proposes a layout",
    },
    {
      ...common,
      id: "cpus-off-nic-node",
      probe: "off_node",
      argument: [nic, ...near].join(" "),
      want: "none",
      next: "move these cpus of HOST to the node of its NIC: ./ztbench cpus proposes a layout",
    },
    {
      ...common,
      id: "second-threads",
      probe: "second_threads",
      argument: formatCpuList(busy) || "-",
      want: "none",
      next: "use one thread of each core of HOST: ./ztbench cpus proposes a layout",
    },
    {
      ...common,
      id: "clock-synchronised",
      probe: "clock",
      argument: "-",
      want: "yes",
      next: "on HOST: apt-get install --yes chrony, and wait until chronyc tracking tells Normal",
    },
  ];
}

function moduleCheck(): Check {
  return {
    phase: "host",
    id: "missing-modules",
    probe: "missing_modules",
    argument: Object.entries(podModules)
      .map(([name, symbol]) => `${name}:${symbol}`)
      .join(" "),
    comparison: "equal",
    want: "none",
    next: "on HOST: boot a kernel of the distribution that has these modules, whole",
  };
}

function roomChecks(bound: { freeMebibytes: number; freeConnections: number }): Check[] {
  const common = { phase: "host", comparison: "at-least" } as const;
  return [
    {
      ...common,
      id: "conntrack-free",
      probe: "free_connections",
      argument: "-",
      want: String(bound.freeConnections),
      next: "on HOST: look who fills the table, or raise net.netfilter.nf_conntrack_max",
    },
    {
      ...common,
      id: "disk-free-mib",
      probe: "free_mebibytes",
      argument: "/var/lib",
      want: String(bound.freeMebibytes),
      next: "on HOST: make room below /var/lib",
    },
  ];
}

/** Both ways, since each host asks all others and an answer is as long as the question. */
function pathCheck(testbed: Testbed, host: Host, mtu: number): Check {
  const peers = testbed.hosts
    .filter(({ name }) => name !== host.name)
    .map(({ name, dataAddress }) => `${name}=${dataAddress}`);
  return {
    phase: "path",
    id: "peers-beyond-mtu",
    probe: "cut_paths",
    argument: [host.dataAddress, mtu, ...peers].join(" "),
    comparison: "equal",
    want: "none",
    next: `give NICs and switch the same mtu, ${mtu}: ip link show dev NIC tells it`,
  };
}
