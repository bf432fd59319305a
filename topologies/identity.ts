/** Names that tokens, proxies and the service agree on, and those of forged requests. */

// Short, so that a token of 680 bytes, the size that was published, holds them.
export const issuerName = "https://issuer.test";
export const audience = "ztbench";

/** Claims of a token, and the request headers that carry them behind a gateway. */
export const identityHeaders = [
  { claim: "user_id", header: "x-user-id" },
  { claim: "tenant_id", header: "x-tenant-id" },
  { claim: "roles", header: "x-user-roles" },
] as const;

/** Header in which the service says for whom a request spoke. */
export const userHeader = "x-user-id";

/** What the user ids in tokens look like. */
export const tokenUserPattern = "^user-[0-9]{6}$";

/** What a caller says of itself where nobody asks for proof. */
export const claimedUser = "claimed-user";

/** What an attacker says of itself. */
export const forgedUser = "forged-user";

/** Path that needs no token where a gateway stands before the service. */
export const publicPath = "/public";

/** Header in which a sidecar tells its service whose certificate the caller has shown. */
export const peerHeader = "x-forwarded-client-cert";
