/**
 * Whether a testbed has what a plan says its figures need; told before anything is deployed, so
 * that no campaign ends in numbers that were measured on too little.
 */
import { threadsOf } from "../contracts/cpu-list.ts";
import { Failure } from "../contracts/failure.ts";
import type { Minimum, Plan } from "../contracts/plan.ts";
import type { CpuLayout, Host, Role, Testbed } from "../contracts/testbed.ts";

type Need = {
  readonly key: Exclude<keyof Minimum, "otherwise">;
  readonly set: "load" | "proxy" | "service";
  readonly roles: readonly Role[];
};

const needs: readonly Need[] = [
  { key: "loadCpus", set: "load", roles: ["client"] },
  { key: "proxyCpus", set: "proxy", roles: ["client", "gateway", "server"] },
  { key: "serviceCpus", set: "service", roles: ["server"] },
];

/**
 * Compares the `minimum` of a plan with the CPU layout of the testbed.
 *
 * @returns what a reader must know: the service has more CPUs than the plan speaks of
 * @throws Failure `testbed` naming, for each set that is too small, need and finding; the hint
 *   names the plan for smaller testbeds if there is one; also for pods without a cluster
 */
export function requireFeasible(plan: Plan, testbed: Testbed): readonly string[] {
  requireCluster(plan, testbed);
  const { minimum } = plan;
  if (minimum === undefined) return [];
  const lacks = needs.flatMap((need) => {
    const wanted = minimum[need.key];
    if (wanted === undefined) return [];
    return testbed.hosts
      .filter((host) => need.roles.includes(host.role))
      .filter((host) => (threadsOf(host.cpus[need.set]) ?? 0) < wanted)
      .map((host) => describeLack(host, need.set, wanted));
  });
  if (lacks.length > 0) {
    throw new Failure("testbed", `plan ${plan.name} on ${testbed.name}: ${lacks.join("; ")}`, {
      hint:
        minimum.otherwise === undefined
          ? "run it on a testbed that has them, or correct cpus in the testbed document"
          : `for a testbed like this there is ${minimum.otherwise}: ` +
            `./ztbench campaign ${minimum.otherwise}`,
    });
  }
  return surplus(minimum, testbed);
}

function requireCluster(plan: Plan, { name, clusterKind }: Testbed): void {
  const pods = plan.treatments.filter(({ runtime }) => runtime === "k3s");
  if (pods.length === 0 || clusterKind !== "none") return;
  const labels = pods.map(({ label }) => label).join(", ");
  throw new Failure(
    "testbed",
    `plan ${plan.name} on ${name}: runtime k3s of ${labels} needs a cluster, clusterKind none`,
    { hint: "./ztbench lab up --kubernetes, or set clusterKind in the testbed document" },
  );
}

function describeLack(host: Host, set: keyof CpuLayout, wanted: number): string {
  const list = host.cpus[set];
  const found = list === "" ? "none reserved" : `found ${threadsOf(list) ?? 0} (CPUs ${list})`;
  return `needs ${wanted} ${set} CPUs on host ${host.name}, ${found}`;
}

/** More is no obstacle, but GOMAXPROCS is then another than the plan speaks of. */
function surplus({ serviceCpus }: Minimum, testbed: Testbed): string[] {
  if (serviceCpus === undefined) return [];
  return testbed.hosts
    .filter(({ role }) => role === "server")
    .flatMap(({ name, cpus }) => {
      const found = threadsOf(cpus.service) ?? serviceCpus;
      return found === serviceCpus
        ? []
        : [
            `host ${name}: the service has ${found} CPUs, the plan speaks of ${serviceCpus}: ` +
              "CPU shares and limits are not comparable with its source",
          ];
    });
}
