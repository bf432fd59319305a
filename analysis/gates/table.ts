/** The one table of all gates of a run, in the order of their numbers. */
import { clusterGates } from "./cluster-gates.ts";
import { type Gate, gateNumbers, type GateId } from "./gate.ts";
import { generatorGates } from "./generator-gates.ts";
import { hostGates } from "./host-gates.ts";
import { loadGates } from "./load-gates.ts";
import { machineGates } from "./machine-gates.ts";
import { pathGates } from "./path-gates.ts";
import { recordGates } from "./record-gates.ts";

const all = [
  ...recordGates,
  ...loadGates,
  ...generatorGates,
  ...pathGates,
  ...hostGates,
  ...machineGates,
  ...clusterGates,
];

export const gateIds = Object.keys(gateNumbers) as readonly GateId[];

/** Each gate once, by number. */
export const gates: readonly Gate[] = gateIds.map((id) => {
  const [gate, ...others] = all.filter((one) => one.id === id);
  if (gate === undefined || others.length > 0) throw new Error(`gate ${id}: must be there once`);
  return gate;
});
