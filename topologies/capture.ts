/**
 * Rules by which a sidecar takes just its own traffic, set by Istio's tool: outbound the service
 * address alone, inbound the service port alone. All else, SSH above all, is left as it is. Pure.
 */
import type { PayloadStep } from "../hosts/payload.ts";
import { quote } from "../hosts/shell.ts";
import { proxyUser } from "./trust.ts";

/** Ports of every sidecar, as Istio numbers them. */
export const sidecarPorts = {
  outbound: 15001,
  inbound: 15006,
  status: 15020,
  health: 15021,
  metrics: 15090,
} as const;

export type Captured =
  { readonly outboundAddress: string; readonly nic: string } | { readonly inboundPort: number };

/** Read whole, since a pipe that is closed early counts as a failure. */
const hasChains = "grep -q 'chain ISTIO_' <<<\"$(nft list ruleset 2>/dev/null)\"";

/**
 * @param root directory of the payload that the step is in
 * @param programs directory of the programs on the host
 */
export function captureStep(captured: Captured, root: string, programs: string): PayloadStep {
  const isOutbound = "outboundAddress" in captured;
  const chosen = isOutbound
    ? `-i ${captured.outboundAddress}/32 -b ''`
    : `-i '' -b ${captured.inboundPort}`;
  // Named, since its own choice between the kernel's two packet filters depends on chance: what
  // is set by one is not found by the other.
  const tool = `${programs}/pilot-agent istio-iptables --force-iptables-binary nft`;
  const before = `${root}/tables-before`;
  const log = `${root}/capture.log`;
  const route = isOutbound ? `${captured.outboundAddress}/32` : undefined;
  const rules = [
    `-p ${sidecarPorts.outbound} -z ${sidecarPorts.inbound} -m REDIRECT`,
    `-u "$(id -u ${proxyUser})" -g "$(id -g ${proxyUser})"`,
    `${chosen} -x ''`,
  ].join(" ");
  return {
    make: [
      `nft list tables >${before}`,
      ...(isOutbound && route !== undefined
        ? [`ip route replace ${route} dev ${quote(captured.nic)}`]
        : []),
      `${tool} ${rules} >${log} 2>&1 ||`,
      `  fail 'sidecar: its traffic cannot be captured' 'mend what it says' "$(tail -n 5 ${log})"`,
    ].join("\n"),
    undo: [
      ...(route === undefined ? [] : [`ip route flush exact ${route}`]),
      `! ${hasChains} || ${tool} --cleanup-only ${rules} >/dev/null 2>&1 || :`,
      // A table that was made for the rules goes, too, once none but its own chains is in it.
      `[ ! -e ${before} ] || for table in 'ip nat' 'ip6 nat' 'ip mangle' 'ip raw'; do`,
      `  grep -qx "table $table" ${before} ||`,
      "    nft list table $table 2>/dev/null |",
      "    grep -Eqv '^(table .*|\\s(chain .*|\\s(type|policy) .*|\\}))?\\}?$' ||",
      "    nft delete table $table 2>/dev/null || :",
      "done",
    ].join("\n"),
    left: [
      ...(route === undefined ? [] : [`ip route show exact ${route} | sed 's/^/route /'`]),
      `! ${hasChains} || echo 'rules of a sidecar in the packet filter'`,
    ].join("\n"),
  };
}
