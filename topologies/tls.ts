/** What TLS legs agree on. */

/**
 * The one key exchange group of every TLS context. Newer Envoys would else negotiate a
 * post-quantum group that older ones do not know, and handshakes would not compare.
 */
export const keyExchangeGroup = "X25519";
