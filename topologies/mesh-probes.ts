/** The security boundary of a mesh: who gets through to the service, and who does not. Pure. */
import type { Expectation, Probe, ProbeTls } from "../contracts/deployment.ts";
import { peerHeader, userHeader } from "./identity.ts";
import { spiffeId } from "./istio.ts";
import type { HttpVersion } from "./model.ts";
import type { impostors } from "./trust.ts";
import { handshakeProbe, meshAlpn } from "./wire.ts";

export type MeshProbePlace = {
  /** Name of a host outside of the mesh, which has the certificates that are tried. */
  readonly host: string;
  /** Where the service's sidecar takes connections, host:port. */
  readonly server: string;
  readonly http: HttpVersion;
  readonly serverId: string;
  readonly callerId: string;
  /** Directory of the certificates on that host. */
  readonly certificates: string;
};

type Entry = Pick<Probe, "host" | "http" | "url" | "timeoutSeconds">;

const status = (code: number): Expectation => ({ outcome: "status", status: code });
const refused: Expectation = { outcome: "refused" };

export function renderMeshProbes(entry: Entry, place: MeshProbePlace): Probe[] {
  const { http, server, callerId } = place;
  const outside = { host: place.host, http, timeoutSeconds: entry.timeoutSeconds };
  const plain = { ...outside, url: `http://${server}/` };
  const encrypted = { ...outside, url: `https://${server}/` };
  const asCaller: Expectation = {
    outcome: "status",
    status: 200,
    header: { name: userHeader, value: callerId },
  };
  const forged = { [peerHeader]: `URI=${spiffeId("admin")}` };
  const withCertificate = (name: keyof typeof impostors) => ({
    ...encrypted,
    tls: tlsOf(place, name),
  });
  return [
    {
      id: "through-sidecars",
      kind: "positive",
      shows: "a request through both sidecars is answered, and the service knows the caller",
      ...entry,
      headers: {},
      expect: asCaller,
    },
    {
      id: handshakeProbe,
      kind: "positive",
      shows: "the caller is its certificate: whoever holds it gets in, from any host",
      ...withCertificate("caller"),
      headers: {},
      expect: asCaller,
    },
    {
      id: "forged-peer",
      kind: "negative",
      shows: "a forged header about the certificate does not change who the caller is",
      ...withCertificate("caller"),
      headers: forged,
      expect: asCaller,
    },
    {
      id: "forged-peer-inside",
      kind: "negative",
      shows: "nor does it when it is sent through the caller's own sidecar",
      ...entry,
      headers: forged,
      expect: asCaller,
    },
    {
      id: "plaintext",
      kind: "negative",
      shows: "a request without TLS is refused",
      ...plain,
      headers: {},
      expect: refused,
    },
    {
      id: "direct-to-service",
      kind: "negative",
      shows: "the caller's own host cannot reach the service past its sidecar",
      ...entry,
      url: `http://${server}/`,
      headers: {},
      expect: refused,
    },
    {
      id: "no-certificate",
      kind: "negative",
      shows: "TLS without a client certificate is refused",
      ...encrypted,
      tls: tlsOf(place),
      headers: {},
      expect: refused,
    },
    {
      id: "foreign-authority",
      kind: "negative",
      shows: "the right name in a certificate of another authority is refused",
      ...withCertificate("foreign-caller"),
      headers: {},
      expect: refused,
    },
    {
      id: "wrong-identity",
      kind: "negative",
      shows: "a workload of the mesh that is not the caller is refused",
      ...withCertificate("stranger"),
      headers: {},
      expect: status(403),
    },
    {
      id: "wrong-trust-domain",
      kind: "negative",
      shows: "the right name in another trust domain is refused",
      ...withCertificate("other-domain"),
      headers: {},
      expect: refused,
    },
  ];
}

function tlsOf(place: MeshProbePlace, certificate?: keyof typeof impostors): ProbeTls {
  const { certificates, serverId, http } = place;
  const file = (name: string) => `${certificates}/${name}.pem`;
  return {
    caFile: file("root-cert"),
    serverId,
    ...(certificate === undefined
      ? {}
      : { certFile: file(`${certificate}-cert`), keyFile: file(`${certificate}-key`) }),
    alpn: [...meshAlpn[http].offered],
  };
}
