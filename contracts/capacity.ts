/** How a plan asks for capacities: the search for the highest rate that holds an objective. */
import { z } from "zod";

const seconds = z.number().nonnegative("must not be negative").max(3600);
const rate = z.int("must be a whole number").positive("must be greater than 0").max(200_000);

/** A geometric ladder of rates, driven up and down again on one deployment. */
export const rateLadderSchema = z.strictObject({
  /** Rates between the ends, both included. */
  steps: z.int().min(3, "must be at least 3").max(30),
  /** Of the capacity found in the same block. */
  from: z.number().gt(0).max(1).default(0.1),
  to: z.number().min(1, "must reach the capacity").max(2).default(1.1),
  secondsPerStep: z.number().min(1).max(600),
});

export const capacitySchema = z
  .strictObject({
    /** Searches of each treatment; their median is the capacity that losses are made of. */
    blocks: z.int().min(1).max(30),
    /** Objective: the share of requests that may take longer, e.g. 0.01 for a p99. */
    share: z.number().gt(0).max(0.1).default(0.01),
    /** Objective: response time that the others must keep, milliseconds. */
    sloMilliseconds: z.number().positive("must be greater than 0").max(60_000),
    /** More failed or unsent requests than this share are no pass, whatever the times. */
    failedShareMax: z.number().nonnegative().max(0.1).default(0.001),
    /** First rate of a search. */
    startQps: rate,
    /** No rate above it is tried; a capacity beyond it is told as "at least". */
    maxQps: rate,
    /** Width of the bracket at which a search ends, relative to its lower end. */
    precision: z.number().min(0.005).max(0.5).default(0.02),
    /** Dropped at the begin of every probe, while connections open. */
    settleSeconds: seconds.default(10),
    probeSeconds: z.number().min(1, "must be at least 1").max(3600).default(30),
    /** Between two probes. */
    cooldownSeconds: seconds.default(10),
    /** A candidate must hold so many times. */
    confirmations: z.int().min(1).max(10).default(3),
    confirmSeconds: z.number().min(1, "must be at least 1").max(3600).default(60),
    ladder: rateLadderSchema.optional(),
    /** Also search what the load driver itself reaches on the same path, against a null server. */
    ceiling: z.boolean().default(true),
  })
  .superRefine((capacity, context) => {
    if (capacity.maxQps <= capacity.startQps) {
      const message = `must be greater than startQps (${capacity.startQps})`;
      context.addIssue({ code: "custom", path: ["maxQps"], message });
    }
  });
export type CapacitySettings = z.infer<typeof capacitySchema>;

/** What a probe was sent for. */
export const probePurposes = ["search", "confirm", "up", "down"] as const;
export type ProbePurpose = (typeof probePurposes)[number];

/** Label of the search against the null server; no treatment may have it. */
export const ceilingLabel = "ceiling";
