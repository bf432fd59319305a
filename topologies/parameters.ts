/** What topologies can vary in: one table of typed parameters, and the reading of given values. */
import type { Runtime } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";

type IntegerParameter = {
  readonly default: number;
  readonly least: number;
  readonly most: number;
  /** What it sets, with its unit, for people. */
  readonly sets: string;
  /** The only runtime in which it means something; absent: it does in all. */
  readonly runtime?: Runtime;
};

export const parameterTable = {
  bodyBytes: { default: 256, least: 0, most: 1_048_576, sets: "bytes of a response body" },
  tokens: { default: 200, least: 1, most: 10_000, sets: "number of distinct valid tokens" },
  tokenBytes: { default: 680, least: 1, most: 16_384, sets: "bytes of a token, up to two more" },
  tokenLifetimeSeconds: {
    default: 86_400,
    least: 60,
    most: 604_800,
    sets: "seconds that tokens are valid",
  },
  meshConnections: {
    default: 32,
    least: 1,
    most: 65_535,
    sets: "connections at most from a sidecar to another",
  },
  requestsPerConnection: {
    default: 0,
    least: 0,
    most: 1_000_000,
    sets: "requests that a connection between sidecars carries before it is closed; 0: it never is",
  },
  certificateSeconds: {
    default: 86_400,
    least: 10,
    most: 604_800,
    sets: "seconds that a sidecar's certificate is valid; it is renewed after half of them",
  },
  sessionResumption: {
    default: 1,
    least: 0,
    most: 1,
    sets: "1: sidecars that connect take up earlier TLS sessions; 0: each handshake is a full one",
  },
  hostNetwork: {
    default: 0,
    least: 0,
    most: 1,
    sets: "1: load and service use the hosts' own network, not that of pods",
    runtime: "k3s",
  },
} as const satisfies Record<string, IntegerParameter>;

export type ParameterName = keyof typeof parameterTable;

/** A value for every parameter of the table; a topology uses those it names. */
export type Parameters = Readonly<Record<ParameterName, number>>;

/** What a topology accepts, and its name for messages. */
type Accepting = { readonly name: string; readonly parameters: readonly ParameterName[] };

/**
 * Checks given values and fills in the defaults. All problems are gathered and thrown once.
 *
 * @throws Failure `usage` for a parameter that the topology does not know in this runtime, of a
 *   wrong type or out of range
 */
export function readParameters(
  topology: Accepting,
  given: Readonly<Record<string, unknown>>,
  runtime: Runtime = "native",
): Parameters {
  const accepted = acceptedBy(topology, runtime);
  const problems = Object.entries(given).flatMap(([name, value]) => {
    const known = accepted.find((candidate) => candidate === name);
    if (known === undefined) {
      return [
        `parameter ${name}: not known to topology ${topology.name} in runtime ${runtime}, ` +
          `known are ${accepted.join(", ")}`,
      ];
    }
    const { least, most } = parameterTable[known];
    const fits = Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
    if (fits) return [];
    const seen = JSON.stringify(value);
    return [
      `parameter ${name}: not usable, ${seen}, allowed are whole numbers ${least} to ${most}`,
    ];
  });
  if (problems.length > 0) {
    throw new Failure("usage", problems.join("\n"), {
      hint: "correct the parameters in the plan, or in the stack's config ztbench:parameters",
    });
  }
  const names = Object.keys(parameterTable) as ParameterName[];
  const values = names.map((name) => [name, given[name] ?? parameterTable[name].default] as const);
  return Object.fromEntries(values) as Record<ParameterName, number>;
}

/** The parameters that a topology uses in a runtime, for its deployment document. */
export function usedParameters(
  topology: Accepting,
  values: Parameters,
  runtime: Runtime,
): Record<string, number> {
  return Object.fromEntries(acceptedBy(topology, runtime).map((name) => [name, values[name]]));
}

function acceptedBy({ parameters }: Accepting, runtime: Runtime): readonly ParameterName[] {
  return parameters.filter((name) => {
    const only = (parameterTable[name] as IntegerParameter).runtime;
    return only === undefined || only === runtime;
  });
}
