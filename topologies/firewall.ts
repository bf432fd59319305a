/** The packet filter that lets only the right hosts reach a port: an nftables table of our own. */

export type PortGuard = {
  readonly port: number;
  /** Source addresses that may connect; the host itself always may. */
  readonly allows: readonly string[];
};

export const firewallTable = "inet ztbench";

/**
 * Text for `nft -f`. Others get a reset rather than silence: a refusal that is seen proves more
 * than an answer that is missing, and a probe of it takes no time-out. The counters show who tried.
 */
export function renderFirewall(guards: readonly PortGuard[]): string {
  const rules = guards.flatMap(({ port, allows }) => [
    `tcp dport ${port} ip saddr { ${allows.join(", ")} } counter accept`,
    `tcp dport ${port} counter reject with tcp reset`,
  ]);
  return [
    `table ${firewallTable} {`,
    "  chain service {",
    "    type filter hook input priority filter; policy accept;",
    '    iifname "lo" accept',
    ...rules.map((rule) => `    ${rule}`),
    "  }",
    "}",
    "",
  ].join("\n");
}
