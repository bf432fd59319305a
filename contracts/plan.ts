/** The plan document: what a campaign measures, hashed before the first request. */
import { z } from "zod";
import { capacitySchema, ceilingLabel } from "./capacity.ts";
import { runtimeSchema } from "./deployment.ts";
import { labelsOf, ladderSchema } from "./ladder.ts";

const label = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lower case letters, digits and dashes");

export const drivers = ["vegeta", "vegeta-paced"] as const;

/**
 * `steady`: pools are warmed and what that took is dropped. `cold-start`: full rate from the first
 * request on fresh processes, measured from it. Runs of the two are never compared.
 */
export const conditions = ["steady", "cold-start"] as const;
export type Condition = (typeof conditions)[number];

/**
 * Whether the load driver opens no more connections than the plan declares, or as many as the
 * driver would by itself: vegeta keeps 10000 idle ones and opens one for each request that waits.
 */
export const connectionLimits = ["bounded", "driver-default"] as const;

/** More than a campaign of days could measure; every one is compared with others. */
const treatmentsMax = 100;

const rateQps = z
  .int("must be a whole number")
  .positive("must be greater than 0")
  .max(100_000, "must be at most 100000");

/** One thing to measure. Its label names rows and directories and is never parsed. */
export const treatmentSchema = z
  .strictObject({
    label,
    topology: z.string().min(1),
    runtime: runtimeSchema.default("native"),
    parameters: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
    driver: z.enum(drivers).default("vegeta-paced"),
    arrival: z.enum(["uniform", "poisson"]).default("uniform"),
    condition: z.enum(conditions).default("steady"),
    connectionLimit: z.enum(connectionLimits).default("bounded"),
    /** Requests per second of this treatment, where it is not that of `load`. */
    rateQps: rateQps.optional(),
    /** Label of the treatment it is compared with, where it is not the plan's baseline. */
    baseline: label.optional(),
  })
  .superRefine((treatment, context) => {
    if (treatment.driver === "vegeta" && treatment.arrival !== "uniform") {
      context.addIssue({
        code: "custom",
        path: ["arrival"],
        message: "must be uniform with driver vegeta, which knows no other",
      });
    }
    if (treatment.connectionLimit === "bounded") return;
    const lacks = [
      ...(treatment.driver === "vegeta" ? [] : ["driver vegeta"]),
      ...(treatment.condition === "cold-start" ? [] : ["condition cold-start"]),
    ];
    if (lacks.length > 0) {
      context.addIssue({
        code: "custom",
        path: ["connectionLimit"],
        message: `must be bounded, driver-default goes with ${lacks.join(" and ")} only`,
      });
    }
  });
export type Treatment = z.infer<typeof treatmentSchema>;

export const loadSchema = z
  .strictObject({
    /** Requests per second of every treatment that has no rate of its own. */
    rateQps,
    /** What comes before the warm-up: requests so few that connections open one at a time. */
    prewarm: z
      .strictObject({
        /** At most the rate of the load itself. */
        rateQps: rateQps.default(50),
        /** 0: none. */
        seconds: z.number().nonnegative("must not be negative").max(60).default(2),
      })
      .prefault({}),
    /** Of steady treatments; a cold start has neither pre-warming nor warm-up. */
    warmupSeconds: z.number().nonnegative("must not be negative").max(3600),
    durationSeconds: z.number().positive("must be greater than 0").max(3600),
    timeoutSeconds: z.number().positive("must be greater than 0").max(60).default(5),
    /** TCP connections of the load driver, idle and at most. */
    connections: z.int().positive().max(10_000),
    workers: z.int().positive().max(10_000).default(64),
    maxWorkers: z.int().positive().max(100_000).default(4000),
    bodyBytes: z.int().nonnegative().max(1_048_576).default(256),
  })
  .superRefine((load, context) => {
    if (load.durationSeconds < load.warmupSeconds) {
      context.addIssue({
        code: "custom",
        path: ["durationSeconds"],
        message: `must not be shorter than warmupSeconds (${load.warmupSeconds})`,
      });
    }
    if (load.maxWorkers < load.workers) {
      context.addIssue({
        code: "custom",
        path: ["maxWorkers"],
        message: `must not be less than workers (${load.workers})`,
      });
    }
  });
export type LoadSettings = z.infer<typeof loadSchema>;

const cpus = z.int().positive().max(4096);

/** What the testbed must have, so that the plan's figures mean what they say. */
export const minimumSchema = z.strictObject({
  /** CPUs of the client's load set. */
  loadCpus: cpus.optional(),
  /** CPUs of the proxy set, on every host. */
  proxyCpus: cpus.optional(),
  /** CPUs of the server's service set; their number becomes GOMAXPROCS of the service. */
  serviceCpus: cpus.optional(),
  /** A plan for testbeds that have less, as a path in the repository. */
  otherwise: z.string().min(1).optional(),
});
export type Minimum = z.infer<typeof minimumSchema>;

/** What cold starts are judged by; declared before the first request, like everything in a plan. */
export const coldStartSchema = z.strictObject({
  /** More connections opened than so many times the declared ones make a storm. */
  stormFactor: z.number().gt(1, "must be greater than 1").max(1000).default(4),
  /** Response time that a user would still take. */
  sloMilliseconds: z.number().positive("must be greater than 0").max(60_000).default(10),
});
export type ColdStartSettings = z.infer<typeof coldStartSchema>;

/** What renewals of certificates are judged by. */
export const rotationSettingsSchema = z.strictObject({
  /** Response time that a user would still take; a request that takes longer or fails is bad. */
  sloMilliseconds: z.number().positive("must be greater than 0").max(60_000),
});

/**
 * What may be published of a result: `nothing`, only `internal` use, or `results`. A testbed or a
 * bundle can take away from it, never add to it.
 */
export const publications = ["nothing", "internal", "results"] as const;
export type Publication = (typeof publications)[number];

/** Below so many blocks the interval is too wide for what is to become of the numbers. */
export const blocksForPublication = { nothing: 1, internal: 5, results: 10 } as const;

/** When a campaign may end before its last block; declared before the first request. */
export const stoppingSchema = z
  .strictObject({
    /** Complete blocks of every treatment before which nothing is looked at. */
    minBlocks: z.int().min(3, "must be at least 3").max(100),
    /** As many as the plan's `blocks`: so many are ordered. */
    maxBlocks: z.int().min(3).max(100),
    /** Half of the width of the interval of a log-ratio that is narrow enough: 0.05 is ±5 %. */
    halfWidth: z.number().gt(0, "must be greater than 0").lt(1, "must be less than 1"),
    metric: z.enum(["responseP50", "responseP99", "cpuPerRequest"]).default("responseP99"),
  })
  .superRefine(({ minBlocks, maxBlocks }, context) => {
    if (minBlocks <= maxBlocks) return;
    const message = `must not be more than maxBlocks (${maxBlocks})`;
    context.addIssue({ code: "custom", path: ["minBlocks"], message });
  });
export type Stopping = z.infer<typeof stoppingSchema>;

type Complain = (path: (string | number)[], message: string) => void;

export const planSchema = z
  .strictObject({
    schema: z.literal("ztbench/plan/1"),
    name: label,
    /** What the result may be used for, for people; printed with it. */
    purpose: z.string().min(1),
    /** Absent: nothing. */
    publishes: z.enum(publications).optional(),
    seed: z.int().nonnegative(),
    blocks: z.int().min(1).max(100),
    /** Label of the treatment that the others are compared with; it runs twice in each block. */
    baseline: label,
    minimum: minimumSchema.optional(),
    treatments: z
      .array(treatmentSchema)
      .min(1)
      .max(treatmentsMax, `must be ${treatmentsMax} treatments at most`),
    load: loadSchema,
    coldStart: coldStartSchema.optional(),
    /** Without it bad requests are not counted by the renewal of a certificate. */
    rotation: rotationSettingsSchema.optional(),
    /** Searches after all blocks; without them throughput losses are not measured. */
    capacity: capacitySchema.optional(),
    /** Which treatments are the rungs that layers of cost are told by. */
    ladder: ladderSchema.optional(),
    /** Smallest ratio that matters, e.g. 0.05; used for "equivalent". */
    equivalenceMargin: z.number().gt(0).lt(1),
    stopping: stoppingSchema.optional(),
  })
  .superRefine((plan, context) => {
    const complain: Complain = (path, message) => {
      context.addIssue({ code: "custom", path, message });
    };
    if (plan.treatments.length > treatmentsMax) return;
    const renews = plan.treatments.some(({ parameters }) => "certificateSeconds" in parameters);
    if (plan.rotation !== undefined && !renews) {
      complain(["rotation"], "must be absent, no treatment has certificateSeconds");
    }
    if (plan.stopping !== undefined && plan.stopping.maxBlocks !== plan.blocks) {
      complain(["stopping", "maxBlocks"], `must be blocks (${plan.blocks})`);
    }
    const seen = new Map<string, number>();
    plan.treatments.forEach((treatment, index) => {
      const first = seen.get(treatment.label);
      if (first === undefined) seen.set(treatment.label, index);
      else {
        complain(["treatments", index, "label"], `label is already used by treatments[${first}]`);
      }
      if (plan.capacity !== undefined && treatment.label === ceilingLabel) {
        const message = "must be another one, the search against the null server has it";
        complain(["treatments", index, "label"], message);
      }
    });
    const least = blocksForPublication[plan.publishes ?? "nothing"];
    if (plan.blocks < least) {
      complain(["blocks"], `must be at least ${least} to publish ${plan.publishes ?? "nothing"}`);
    }
    const labels = [...seen.keys()].join(", ");
    if (!seen.has(plan.baseline)) {
      complain(["baseline"], `must be the label of a treatment (${labels})`);
    }
    const steady = plan.treatments.find(({ condition }) => condition === "steady");
    if (steady !== undefined && plan.load.warmupSeconds === 0) {
      complain(["load", "warmupSeconds"], `must be greater than 0, ${steady.label} is steady`);
    }
    plan.treatments.forEach((_, index) => {
      checkBaseline(plan, index, complain);
    });
    checkLadder(plan, complain);
  });
export type Plan = z.infer<typeof planSchema>;

type Compared = Pick<Plan, "baseline" | "treatments" | "load">;

/**
 * Load settings that a treatment really gets: those of the plan, at its own rate if it has one,
 * pre-warmed at no more than that; a cold start without anything before it.
 */
export function loadOf(plan: Pick<Plan, "load">, treatment: Treatment): LoadSettings {
  const { prewarm } = plan.load;
  const own = treatment.rateQps ?? plan.load.rateQps;
  const slow = Math.min(prewarm.rateQps, own);
  return treatment.condition === "cold-start"
    ? { ...plan.load, rateQps: own, warmupSeconds: 0, prewarm: { rateQps: slow, seconds: 0 } }
    : { ...plan.load, rateQps: own, prewarm: { ...prewarm, rateQps: slow } };
}

/** What cold starts of a plan are judged by. */
export function coldStartOf(plan: Pick<Plan, "coldStart">): ColdStartSettings {
  return plan.coldStart ?? coldStartSchema.parse({});
}

/**
 * Label under which the capacity of a treatment is searched: that of the first steady one which
 * differs from it in rate, label and baseline at most, since a search sets the rate itself.
 */
export function capacityLabelOf(plan: Pick<Plan, "treatments">, treatment: Treatment): string {
  const same = (other: Treatment) => searchKeyOf(other) === searchKeyOf(treatment);
  return plan.treatments.find(same)?.label ?? treatment.label;
}

function searchKeyOf(treatment: Treatment): string {
  const { topology, runtime, parameters, driver, arrival, condition, connectionLimit } = treatment;
  const sorted = Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([topology, runtime, sorted, driver, arrival, condition, connectionLimit]);
}

/** Label of the treatment that this one is compared with; a baseline's is its own. */
export function baselineOf(plan: Compared, treatment: Treatment): string {
  return isBaseline(plan, treatment.label)
    ? treatment.label
    : (treatment.baseline ?? plan.baseline);
}

/** Whether others are compared with it, so that it runs twice in each block. */
export function isBaseline(plan: Compared, label: string): boolean {
  return plan.baseline === label || plan.treatments.some(({ baseline }) => baseline === label);
}

/** Rungs are compared at equal rate, too, and none of them is cold. */
function checkLadder(
  plan: Compared & { readonly ladder?: z.infer<typeof ladderSchema> | undefined },
  complain: Complain,
): void {
  const { ladder } = plan;
  if (ladder === undefined) return;
  const rates = new Set<number>();
  for (const label of labelsOf(ladder)) {
    const treatment = plan.treatments.find((other) => other.label === label);
    if (treatment === undefined) {
      const known = plan.treatments.map((other) => other.label).join(", ");
      complain(["ladder"], `must name treatments, found ${label}, there are ${known}`);
      continue;
    }
    if (treatment.condition !== "steady") {
      complain(["ladder"], `must name steady treatments, ${label} is ${treatment.condition}`);
    }
    rates.add(loadOf(plan, treatment).rateQps);
  }
  for (const { requestsPerConnection, tls, full, plain } of ladder.handshake ?? []) {
    const check = (label: string, name: string, wanted: number, otherwise: number) => {
      const treatment = plan.treatments.find((other) => other.label === label);
      const found = treatment?.parameters[name] ?? otherwise;
      if (treatment === undefined || found === wanted) return;
      complain(["ladder", "handshake"], `must have ${name} ${wanted} in ${label}, found ${found}`);
    };
    for (const label of [tls, ...(full === undefined ? [] : [full]), plain]) {
      check(label, "requestsPerConnection", requestsPerConnection, 0);
    }
    check(tls, "sessionResumption", 1, 1);
    if (full !== undefined) check(full, "sessionResumption", 0, 1);
  }
  if (rates.size > 1) {
    complain(["ladder"], `must have one rate on all rungs, found ${[...rates].join(", ")}/s`);
  }
}

/** Loss is defined at equal offered rate only, and against something that was measured twice. */
function checkBaseline(plan: Compared, index: number, complain: Complain): void {
  const treatment = plan.treatments[index];
  if (treatment === undefined) return;
  const path = ["treatments", index, "baseline"];
  const label = baselineOf(plan, treatment);
  if (label === treatment.label) {
    if (treatment.baseline !== undefined) {
      complain(path, `must be absent, ${label} is a baseline itself`);
    }
    return;
  }
  const found = plan.treatments.find((other) => other.label === label);
  if (found === undefined) {
    if (treatment.baseline !== undefined) {
      const labels = plan.treatments.map((other) => other.label).join(", ");
      complain(path, `must be the label of a treatment (${labels})`);
    }
    return;
  }
  const [own, other] = [loadOf(plan, treatment).rateQps, loadOf(plan, found).rateQps];
  if (own !== other) {
    complain(path, `must name a treatment of the same rate (${own}/s), ${label} has ${other}/s`);
  }
}
