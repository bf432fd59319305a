/** The security boundary of a mesh: who gets through to the service, and who does not. Pure. */
import type { Expectation, Probe, ProbeTls } from "../contracts/deployment.ts";
import { peerHeader, userHeader } from "./identity.ts";
import { spiffeId } from "./istio.ts";
import type { HttpVersion } from "./model.ts";
import { impostors } from "./trust.ts";
import { handshakeProbe, type MeshAlpn } from "./wire.ts";

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
  /** What the sidecars offer each other. */
  readonly alpn: MeshAlpn;
  /** Whether rules admit the caller alone; else whoever the authority knows. */
  readonly hasRules: boolean;
};

export type Entry = Pick<Probe, "host" | "networkNamespace" | "http" | "url" | "timeoutSeconds">;

const timeoutSeconds = 2;
const refused: Expectation = { outcome: "refused" };

/** All probes of a mesh; `entry` is how load enters it. */
export function renderMeshProbes(entry: Entry, place: MeshProbePlace): Probe[] {
  return [
    ...probesAsCaller(entry, place),
    ...(place.hasRules ? [] : [probeOfAnyWorkload(place)]),
    ...probesPastTls(entry, place),
    ...probesAsOther(place),
  ];
}

/** What mutual TLS by itself does not stop. */
function probeOfAnyWorkload(place: MeshProbePlace): Probe {
  return {
    id: "any-workload",
    kind: "positive",
    shows: "not stopped: any workload of the mesh is answered, as what its certificate says it is",
    ...withCertificate(place, "stranger"),
    headers: {},
    expect: {
      outcome: "status",
      status: 200,
      header: { name: userHeader, value: impostors.stranger.id },
    },
  };
}

const outsideOf = (place: MeshProbePlace) => ({
  host: place.host,
  http: place.http,
  timeoutSeconds,
});

const withCertificate = (place: MeshProbePlace, name?: keyof typeof impostors) => ({
  ...outsideOf(place),
  url: `https://${place.server}/`,
  tls: tlsOf(place, name),
});

/** Who shows the caller's certificate is the caller, and nothing that it says changes that. */
function probesAsCaller(entry: Entry, place: MeshProbePlace): Probe[] {
  const asCaller: Expectation = {
    outcome: "status",
    status: 200,
    header: { name: userHeader, value: place.callerId },
  };
  const forged = { [peerHeader]: `URI=${spiffeId("admin")}` };
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
      ...withCertificate(place, "caller"),
      headers: {},
      expect: asCaller,
    },
    {
      id: "forged-peer",
      kind: "negative",
      shows: "a forged header about the certificate does not change who the caller is",
      ...withCertificate(place, "caller"),
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
  ];
}

/** Without TLS, or past the sidecar that speaks it. */
function probesPastTls(entry: Entry, place: MeshProbePlace): Probe[] {
  const url = `http://${place.server}/`;
  const { host, http, timeoutSeconds } = entry;
  return [
    {
      id: "plaintext",
      kind: "negative",
      shows: "a request without TLS is refused",
      ...outsideOf(place),
      url,
      headers: {},
      expect: refused,
    },
    {
      id: "direct-to-service",
      kind: "negative",
      shows: "the caller's own host cannot reach the service past its sidecar",
      // Where pods are, all that the entry's namespace sends goes through its sidecar.
      host,
      http,
      timeoutSeconds,
      url,
      headers: {},
      expect: refused,
    },
  ];
}

/** TLS by everybody else. */
function probesAsOther(place: MeshProbePlace): Probe[] {
  const others: {
    readonly id: string;
    readonly shows: string;
    readonly certificate?: keyof typeof impostors;
    readonly expect: Expectation;
  }[] = [
    {
      id: "no-certificate",
      shows: "TLS without a client certificate is refused",
      expect: refused,
    },
    {
      id: "foreign-authority",
      shows: "the right name in a certificate of another authority is refused",
      certificate: "foreign-caller",
      expect: refused,
    },
    ...(place.hasRules
      ? [
          {
            id: "wrong-identity",
            shows: "a workload of the mesh that is not the caller is refused",
            certificate: "stranger",
            expect: { outcome: "status", status: 403 },
          } as const,
        ]
      : []),
    {
      id: "wrong-trust-domain",
      shows: "the right name in another trust domain is refused",
      certificate: "other-domain",
      expect: refused,
    },
  ];
  return others.map(({ id, shows, certificate, expect }) => ({
    id,
    kind: "negative",
    shows,
    ...withCertificate(place, certificate),
    headers: {},
    expect,
  }));
}

function tlsOf(place: MeshProbePlace, certificate?: keyof typeof impostors): ProbeTls {
  const { certificates, serverId, http, alpn } = place;
  const file = (name: string) => `${certificates}/${name}.pem`;
  return {
    caFile: file("root-cert"),
    serverId,
    ...(certificate === undefined
      ? {}
      : { certFile: file(`${certificate}-cert`), keyFile: file(`${certificate}-key`) }),
    alpn: [...alpn[http].offered],
  };
}
