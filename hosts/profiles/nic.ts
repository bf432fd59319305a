/** Knobs of the data NIC in profile `repro`: how packets reach CPUs, and when. */
import { parseCpuList } from "../../contracts/cpu-list.ts";
import { cpuMask, type Knob, type KnobKind, type KnobPlace } from "../knobs.ts";

/** Queues first, since interrupts belong to queues; then what is set for all of them. */
export function nicKnobs(place: KnobPlace): readonly Knob[] {
  return [
    ...queues(place),
    discipline(place),
    ...steering(place),
    ...device(place),
    ...offloads(place),
  ];
}

/** One queue for each CPU of the set, its interrupt there and nowhere else. */
function queues({ nic, cpus }: KnobPlace): Knob[] {
  const own = parseCpuList(cpus.irq);
  if (own.length === 0) return [];
  const count: Knob = {
    id: "queues",
    scope: "device",
    kind: "channels",
    target: `${nic} combined`,
    want: String(own.length),
    why: "one for each CPU that serves interrupts",
  };
  const interrupts = own.map((cpu, queue): Knob => ({
    id: `irq-${queue}`,
    scope: "device",
    kind: "irq",
    target: `${nic} ${queue}`,
    want: String(cpu),
    why: "interrupts that move are spikes in the tail",
  }));
  const transmit = own.map((cpu, queue): Knob => ({
    id: `xps-${queue}`,
    scope: "device",
    kind: "mask",
    target: `/sys/class/net/${nic}/queues/tx-${queue}/xps_cpus`,
    want: cpuMask(String(cpu)),
    why: "completions stay on one CPU",
  }));
  return [count, ...interrupts, ...transmit];
}

/** After the queues, of which each gets its own. Cubic does not need the pacing of `fq`. */
function discipline({ nic }: KnobPlace): Knob {
  const why = "fixed and stated; others order and drop otherwise";
  return { id: "qdisc", scope: "device", kind: "qdisc", target: nic, want: "fq_codel", why };
}

/** Steering by software only adds interrupts between CPUs where there are queues enough. */
function steering({ nic }: KnobPlace): Knob[] {
  const receive = `/sys/class/net/${nic}/queues/rx-*`;
  const why = "no hidden steering between CPUs";
  const common = { scope: "device", want: "0", why } as const;
  return [
    { ...common, id: "rps-cpus", kind: "mask", target: `${receive}/rps_cpus` },
    { ...common, id: "rps-flows", kind: "each", target: `${receive}/rps_flow_cnt` },
  ];
}

function device({ nic }: KnobPlace): Knob[] {
  const knob = (id: string, kind: KnobKind, name: string, want: string, why: string): Knob => ({
    id,
    scope: "device",
    kind,
    target: `${nic} ${name}`,
    want,
    why,
  });
  const adapts = "what adapts to load makes latency depend on the topology";
  const bounded = "a longer ring is a deeper queue and more cache misses";
  return [
    knob("ring-rx", "ring", "rx", "1024", bounded),
    knob("ring-tx", "ring", "tx", "1024", bounded),
    knob("coalesce-adaptive-rx", "coalesce", "adaptive-rx", "off", adapts),
    knob("coalesce-adaptive-tx", "coalesce", "adaptive-tx", "off", adapts),
    knob("coalesce-rx-usecs", "coalesce", "rx-usecs", "8", "fixed and stated"),
    knob("coalesce-rx-frames", "coalesce", "rx-frames", "32", "fixed and stated"),
    // Of the driver mlx5; others do not have them.
    knob("cqe-compress", "private", "rx_cqe_compress", "off", "saves PCIe at the cost of latency"),
    knob("cqe-moderation", "private", "rx_cqe_moder", "on", "fixed and stated"),
    knob("pause-autoneg", "pause", "autoneg", "off", "pauses are as stated"),
    knob("pause-rx", "pause", "rx", "off", "a paused link is a hidden queue"),
    knob("pause-tx", "pause", "tx", "off", "a paused link is a hidden queue"),
  ];
}

function offloads({ nic }: KnobPlace): Knob[] {
  const offload = (id: string, feature: string, want: "on" | "off", why: string): Knob => ({
    id: `offload-${id}`,
    scope: "device",
    kind: "offload",
    target: `${nic} ${feature}`,
    want,
    why,
  });
  // Checksums before segmentation, which needs them.
  return [
    offload("tx", "tx-checksumming", "on", "segmentation needs it"),
    offload("rx", "rx-checksumming", "on", "as users run it"),
    offload("sg", "scatter-gather", "on", "segmentation needs it"),
    offload("tso", "tcp-segmentation-offload", "on", "as users run it"),
    offload("gso", "generic-segmentation-offload", "on", "as users run it"),
    offload("gro", "generic-receive-offload", "on", "as users run it; virtual links have it off"),
    offload("lro", "large-receive-offload", "off", "hides how data were cut into packets"),
    offload("hw-tc", "hw-tc-offload", "off", "packets must meet the kernel's rules"),
  ];
}
