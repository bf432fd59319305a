/** What topologies can vary in: one table of typed parameters, and the reading of given values. */
import { Failure } from "../contracts/failure.ts";

type IntegerParameter = {
  readonly default: number;
  readonly least: number;
  readonly most: number;
  /** What it sets, with its unit, for people. */
  readonly sets: string;
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
} as const satisfies Record<string, IntegerParameter>;

export type ParameterName = keyof typeof parameterTable;

/** A value for every parameter of the table; a topology uses those it names. */
export type Parameters = Readonly<Record<ParameterName, number>>;

/** What a topology accepts, and its name for messages. */
type Accepting = { readonly name: string; readonly parameters: readonly ParameterName[] };

/**
 * Checks given values and fills in the defaults. All problems are gathered and thrown once.
 *
 * @throws Failure `usage` for a parameter that the topology does not know, of a wrong type or
 *   out of range
 */
export function readParameters(
  topology: Accepting,
  given: Readonly<Record<string, unknown>>,
): Parameters {
  const problems = Object.entries(given).flatMap(([name, value]) => {
    const known = topology.parameters.find((candidate) => candidate === name);
    if (known === undefined) {
      return [
        `parameter ${name}: not known to topology ${topology.name}, ` +
          `known are ${topology.parameters.join(", ")}`,
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

/** The parameters that a topology uses, for its deployment document. */
export function usedParameters(topology: Accepting, values: Parameters): Record<string, number> {
  return Object.fromEntries(topology.parameters.map((name) => [name, values[name]]));
}
