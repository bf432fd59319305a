/** What TLS legs agree on, and the facts that must therefore be seen on the wire. */
import type { TopologyLeg } from "./model.ts";

/**
 * The one key exchange group of every TLS context. Newer Envoys would else negotiate a
 * post-quantum group that older ones do not know, and handshakes would not compare.
 */
export const keyExchangeGroup = "X25519";

const version = "TLSv1.3";
const cipher = "TLS_AES_128_GCM_SHA256";
const alpn = { "1.1": "http/1.1", "2": "h2" } as const;

/** Facts of a leg by name, as Envoy reports them; none where nothing is encrypted. */
export function wireFactsOf(leg: TopologyLeg): Record<string, string> {
  if (leg.tls.mode === "none") return {};
  return {
    alpn: alpn[leg.http],
    cipher,
    group: keyExchangeGroup,
    keyType: leg.tls.keyType,
    version,
  };
}
