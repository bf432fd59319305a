/** The deployment document of a topology as far as it is planned, in whatever runtime. Pure. */
import {
  type Deployment,
  deploymentSchema,
  type Expectation,
  type Leg,
  type Runtime,
} from "../contracts/deployment.ts";
import { hostOf, type Testbed } from "../contracts/testbed.ts";
import { type Endpoint, tokenDirectoryOf } from "./endpoints.ts";
import { claimedUser, userHeader } from "./identity.ts";
import { meshProbePlaces } from "./mesh-place.ts";
import { nodeOf, nodesOfKind, type Topology, type TopologyNode } from "./model.ts";
import { type Parameters, usedParameters } from "./parameters.ts";
import { renderProbes } from "./probes.ts";
import { type MeshAlpn, wireFactsOf, wireSourcesOf } from "./wire.ts";

/** What a runtime makes of a topology. */
export type PlannedRuntime = {
  readonly runtime: Runtime;
  readonly testbed: Testbed;
  readonly parameters: Parameters;
  /** Network namespace that load is sent from; absent: the host's own. */
  readonly networkNamespace: string | undefined;
  /** Where clients of a node send to. */
  readonly endpointOf: (id: string) => Endpoint;
  /** What the unit of a node is called. */
  readonly unitNameOf: (node: TopologyNode) => string;
  /** What sidecars offer each other. */
  readonly alpn: MeshAlpn;
  /** Directory of the certificates that probes of a mesh try. */
  readonly certificates: string;
  /** What whoever the network keeps out gets to see. */
  readonly shutOut: Expectation;
} & Pick<Deployment, "units" | "admin" | "statistics" | "scheduling" | "configurationDigest">;

/** All that follows from the topology is the same in every runtime; the rest is handed in. */
export function plannedDeployment(topology: Topology, planned: PlannedRuntime): Deployment {
  const { runtime, testbed, parameters, networkNamespace, alpn } = planned;
  const [first] = topology.legs;
  const host = hostOf(testbed, nodeOf(topology, first.from).role).name;
  const inNamespace = networkNamespace === undefined ? {} : { networkNamespace };
  const tokenDirectory = tokenDirectoryOf(topology);
  const tokens = nodesOfKind(topology, "issuer").length > 0;
  const urlOf = (id: string) => {
    const { address, port } = planned.endpointOf(id);
    return `http://${address}:${port}`;
  };
  const { certificates, shutOut } = planned;
  return deploymentSchema.parse({
    schema: "ztbench/deployment/1",
    topology: topology.name,
    runtime,
    testbed: testbed.name,
    testbedClass: testbed.class,
    ...(testbed.instance === undefined ? {} : { instance: testbed.instance }),
    parameters: usedParameters(topology, parameters, runtime),
    entry: {
      host,
      ...inNamespace,
      url: `${urlOf(first.to)}/`,
      http: first.http,
      ...(tokens ? { tokensFile: `${tokenDirectory}/valid.txt` } : {}),
      // Where nobody asks for proof, a caller just says who it is, so that answers are alike.
      headers: tokens ? {} : { [userHeader]: claimedUser },
    },
    legs: topology.legs.map((leg): Leg => ({
      from: leg.from,
      to: leg.to,
      http: leg.http,
      tls: leg.tls.mode,
      wire: wireFactsOf(topology, leg, alpn),
      seenBy: wireSourcesOf(topology, leg, planned.unitNameOf),
    })),
    units: planned.units,
    admin: planned.admin,
    statistics: planned.statistics,
    probes: renderProbes(topology, {
      host,
      ...inNamespace,
      entryUrl: urlOf(first.to),
      entryHttp: first.http,
      tokenDirectory,
      urlOf,
      shutOut,
      ...meshProbePlaces(topology, { testbed, urlOf, certificates, alpn }),
    }),
    scheduling: planned.scheduling,
    configurationDigest: planned.configurationDigest,
  } satisfies Deployment);
}
