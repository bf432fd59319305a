/** The profile for comparison: what the distribution sets, with limits raised so that load fits. */
import { sysctl, type Knob } from "../knobs.ts";

/** The knobs of profile `stock`. */
export function stockKnobs(): readonly Knob[] {
  return [
    sysctl("namespace", "net.ipv4.ip_local_port_range", "10240 65535", "enough client ports"),
    sysctl("machine", "net.netfilter.nf_conntrack_max", 1048576, "no refused connections"),
  ];
}
