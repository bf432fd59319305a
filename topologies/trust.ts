/**
 * How sidecars get the certificate that they show the control plane: each makes its key on its own
 * host, and only requests and certificates travel. Payloads and steps of payloads. Pure.
 */
import { hostOf, type Testbed } from "../contracts/testbed.ts";
import { type HostPayload, payloadIdOf, type PayloadStep } from "../hosts/payload.ts";
import { quote } from "../hosts/shell.ts";
import { rootOf } from "./endpoints.ts";
import { spiffeId } from "./istio.ts";
import { nodesOfKind, type Topology, type TopologyNode } from "./model.ts";

/** User of the sidecars; made for them, with whatever number the host gives it. */
export const proxyUser = "ztbench-proxy";

const certificateSeconds = 86_400;
const nothing = ":";

/** Directory of a sidecar's first key and certificate. */
export function identityRootOf(topology: Topology): string {
  return `${rootOf(topology)}.identity`;
}

/** Directory of the certificates that probes try, on the control plane's host. */
export function impostorDirectoryOf(topology: Topology): string {
  return `${rootOf(topology)}/impostors`;
}

/** Directory of the authority, on the control plane's host. */
export function authorityDirectoryOf(topology: Topology): string {
  return `${rootOf(topology)}/authority`;
}

const accountOf = (node: TopologyNode): string => {
  if (node.account === undefined) throw new Error(`sidecar ${node.id}: needs an account`);
  return node.account;
};

/** The SPIFFE ID of a sidecar. */
export function identityOf(node: TopologyNode): string {
  return spiffeId(accountOf(node));
}

/** Put on before all else of a sidecar's host: its user, its key; prints the request. */
export function identityPayload(
  topology: Topology,
  node: TopologyNode,
  testbed: Testbed,
  programs: string,
): HostPayload {
  const root = identityRootOf(topology);
  return {
    host: hostOf(testbed, node.role).name,
    name: "identity",
    root,
    directories: [{ path: root, mode: "0711" }],
    files: [],
    units: [],
    steps: [
      userStep(root),
      {
        make: [
          `${programs}/ztca request -dir ${root} >${root}/printed`,
          `chown ${proxyUser}: ${root}/key.pem`,
        ].join("\n"),
        undo: nothing,
        left: nothing,
      },
    ],
    after: [],
  };
}

/** Its name says whose it is, so that one which is there already must be our own. */
function userStep(root: string): PayloadStep {
  return {
    make: [
      `getent passwd ${proxyUser} >/dev/null || ` +
        `useradd --system --user-group --no-create-home --shell /usr/sbin/nologin ${proxyUser}`,
      // The user must reach its own directory; what others may not see has modes of its own.
      `chmod a+x ${root.slice(0, root.lastIndexOf("/"))}`,
    ].join("\n"),
    undo: `! getent passwd ${proxyUser} >/dev/null || userdel ${proxyUser}`,
    left: `! getent passwd ${proxyUser} >/dev/null || echo "user ${proxyUser}"`,
  };
}

/** Id of the payload that holds a sidecar's key. */
const identityIdOf = (node: TopologyNode, testbed: Testbed): string =>
  payloadIdOf({ host: hostOf(testbed, node.role).name, name: "identity" });

const variableOf = (node: TopologyNode): string => `request_${node.id.replaceAll("-", "_")}`;

/** What the control plane's payload receives: a request of each sidecar. */
export function requestsOf(topology: Topology, testbed: Testbed): Record<string, string> {
  const sidecars = nodesOfKind(topology, "sidecar");
  return Object.fromEntries(
    sidecars.map((node) => [variableOf(node), identityIdOf(node, testbed)]),
  );
}

/** Certificates that probes try, by the name of their files. */
export const impostors = {
  /** Holds what the client's sidecar holds. */
  caller: { id: spiffeId("client"), signedBy: "own" },
  stranger: { id: spiffeId("evil"), signedBy: "own" },
  "other-domain": { id: spiffeId("client", "other.test"), signedBy: "own" },
  "foreign-caller": { id: spiffeId("client"), signedBy: "foreign" },
} as const;

/** For `ztca impostors`. */
export const impostorArguments: readonly string[] = Object.entries(impostors).map(
  ([name, { id, signedBy }]) => `-${signedBy}=${name}=${id}`,
);

/** Makes the authority and the certificates of the probes, and signs what the sidecars ask. */
export function authorityStep(topology: Topology, programs: string): PayloadStep {
  const authority = authorityDirectoryOf(topology);
  const printed = `${rootOf(topology)}/printed`;
  const signs = nodesOfKind(topology, "sidecar").flatMap((node) => [
    `echo ${quote(sectionOf(node))} >>${printed}`,
    `${programs}/ztca sign -dir ${authority} -id ${identityOf(node)} ` +
      `-ttl ${certificateSeconds}s <<<"$${variableOf(node)}" >>${printed}`,
  ]);
  return {
    make: [
      `${programs}/ztca authority -dir ${authority}`,
      `${programs}/ztca impostors -dir ${authority} -out ${impostorDirectoryOf(topology)} ` +
        impostorArguments.join(" "),
      ...signs,
    ].join("\n"),
    undo: nothing,
    left: nothing,
  };
}

const sectionOf = (node: TopologyNode): string => `# ${node.id}`;

/** Stores what was signed for a sidecar, out of the variable that holds all of it. */
export function acceptStep(
  topology: Topology,
  node: TopologyNode,
  programs: string,
  variable: string,
): PayloadStep {
  const root = identityRootOf(topology);
  const pick = `awk -v want=${quote(sectionOf(node))} '/^# /{found = $0 == want; next} found'`;
  return {
    make: [
      `problem=$(${pick} <<<"$${variable}" | ${programs}/ztca accept -dir ${root} 2>&1) ||`,
      `  fail "sidecar ${node.id}: its certificate cannot be used, $problem" ` +
        `'look at the clocks of the hosts, then deploy again'`,
    ].join("\n"),
    undo: nothing,
    left: nothing,
  };
}
