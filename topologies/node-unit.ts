/** What rendering a node takes and gives, and the systemd unit of one. Pure. */
import type { Unit } from "../contracts/deployment.ts";
import { benchSlice, type CpuLayout, hostOf, type Testbed } from "../contracts/testbed.ts";
import type { PayloadFile, PayloadStep, PayloadUnit } from "../hosts/payload.ts";
import { unitNameOf } from "./endpoints.ts";
import type { Topology, TopologyNode } from "./model.ts";
import type { Parameters } from "./parameters.ts";
import { renderUnit, type UnitSpec } from "./units.ts";

export type NodeContext = {
  readonly topology: Topology;
  readonly parameters: Parameters;
  readonly testbed: Testbed;
  readonly scheduling: "rr" | "other";
  /** Directory of the programs on every host. */
  readonly programs: string;
};

export type NodeRendering = {
  readonly unit: PayloadUnit;
  readonly files: readonly PayloadFile[];
  readonly directories: readonly { readonly path: string; readonly mode: string }[];
  readonly steps?: readonly PayloadStep[];
  /** Variables for the steps, by the payloads that give their values. */
  readonly receives?: Readonly<Record<string, string>>;
  /** The unit as the deployment document tells of it. */
  readonly deployed: Unit;
  /** Envoy's admin interface. */
  readonly adminUrl?: string;
  /** A service's own counters. */
  readonly statisticsUrl?: string;
};

type UnitPlan = Pick<Unit, "kind" | "program" | "dataPlane"> & {
  readonly cpuSet: keyof CpuLayout;
  readonly type: UnitSpec["type"];
  readonly arguments: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly workingDirectory?: string;
  readonly scheduling: "rr" | "other";
  readonly startSeconds: number;
  readonly listens: readonly number[];
};

/** A node's unit, both as systemd reads it and as the deployment document tells of it. */
export function unitOf(node: TopologyNode, context: NodeContext, plan: UnitPlan) {
  const host = hostOf(context.testbed, node.role);
  const cpus = host.cpus[plan.cpuSet];
  const name = unitNameOf(node);
  const text = renderUnit({
    description: `ztbench ${context.topology.name}: ${node.id}`,
    argv: [`${context.programs}/${plan.program}`, ...plan.arguments],
    ...(plan.environment === undefined ? {} : { environment: plan.environment }),
    ...(plan.user === undefined ? {} : { user: plan.user }),
    ...(plan.workingDirectory === undefined ? {} : { workingDirectory: plan.workingDirectory }),
    type: plan.type,
    cpus,
    // What is not measured stays with all other services, on the CPUs for the system.
    ...(plan.cpuSet === "system" || cpus === "" ? {} : { slice: benchSlice }),
    scheduling: plan.scheduling,
    startSeconds: plan.startSeconds,
  });
  const { kind, program, dataPlane } = plan;
  return {
    unit: { name, text, listens: plan.listens },
    deployed: { name, host: host.name, kind, program, cpus, dataPlane },
  };
}
