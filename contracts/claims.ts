/** The claims document: figures published elsewhere, with conditions, gaps and contradictions. */
import { z } from "zod";
import { httpVersionSchema } from "./deployment.ts";

const id = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,63}$/, "must be lower case letters, digits, dots and dashes");
const text = z.string().min(1);

/** What a figure is given in; it is shown as printed, never converted here. */
export const claimUnits = [
  "ms",
  "s",
  "min",
  "h",
  "percent",
  "qps",
  "requests",
  "connections",
  "bytes",
  "rules",
  "replicas",
] as const;

/** What is measured, advised or granted; latency is as the driver of the source reported it. */
export const claimMetrics = [
  "latencyP50",
  "latencyP99",
  "latencyIncrease",
  "latencyP99Increase",
  "latencySpike",
  "throughputLimit",
  "throughputChange",
  "connectionDropRate",
  "verificationRate",
  "cpu",
  "serviceCpu",
  "gatewayCpu",
  "sidecarCpu",
  "loadClientCpu",
  "connections",
  "concurrency",
  "handshakeSaving",
  "lossShare",
  "tokenSize",
  "tokenLifetime",
  "tokenReuse",
  "keyCacheLifetime",
  "timeout",
  "certificateLifetime",
  "rules",
  "replicas",
  "steadyDuration",
  "warmupDuration",
  "lossBudget",
] as const;

/** What a figure would need to be repeated, and its source does not tell. */
export const claimGaps = [
  "rate",
  "duration",
  "warmup",
  "repeats",
  "slo",
  "connections",
  "payload",
  "proxyConcurrency",
  "hardware",
  "versions",
  "driver",
  "baseline",
  "component",
  "figures",
] as const;

export const quantitySchema = z
  .strictObject({
    metric: z.enum(claimMetrics),
    unit: z.enum(claimUnits),
    /** The figure, or the least and greatest where a range is given. */
    value: z.number().optional(),
    low: z.number().optional(),
    high: z.number().optional(),
    /** How the source words it, where it does not give the plain number. */
    wording: z.enum(["about", "at least", "at most", "more than", "less than"]).optional(),
  })
  .superRefine(({ metric, unit, value, low, high }, context) => {
    const complain = (message: string, path: string[] = []) => {
      context.addIssue({ code: "custom", path, message });
    };
    // Comparison takes them for milliseconds: another unit must not slip through.
    if (metric.startsWith("latency") && unit !== "ms") complain("must be ms for latency", ["unit"]);
    if ((low === undefined) !== (high === undefined)) complain("must have both low and high");
    else if ((value === undefined) === (low === undefined)) {
      complain("must have either a value or low and high");
    } else if (low !== undefined && high !== undefined && low >= high) {
      complain("must have low less than high");
    }
  });
export type Quantity = z.infer<typeof quantitySchema>;

/** Under which circumstances a figure holds, as far as its source tells. */
export const conditionsSchema = z.strictObject({
  topology: text.optional(),
  rateQps: z.int().positive().optional(),
  connections: z.int().positive().optional(),
  http: httpVersionSchema.optional(),
  tls: z.enum(["1.2", "1.3"]).optional(),
  keyType: z.enum(["rsa-2048", "ecdsa-p256"]).optional(),
  /** Letter of the scenario, in sources that have them. */
  scenario: z.enum(["A", "B", "C", "D", "E"]).optional(),
  /** Program to version, where the figure depends on it. */
  versions: z.record(text, text).optional(),
  /** Anything else that is stated. */
  detail: text.optional(),
});

export const claimSchema = z.strictObject({
  id,
  kind: z.enum(["measurement", "limit", "magnitude", "setting", "security", "advice", "budget"]),
  /** Where in the source it stands. */
  citation: text,
  /** What is claimed, in words of ours. */
  statement: text,
  /** Absent only for statements without a figure. */
  quantity: quantitySchema.optional(),
  conditions: conditionsSchema.default({}),
  missing: z.array(z.enum(claimGaps)).default([]),
  contradictions: z
    .array(
      z.strictObject({
        /** The other claim, which names this one; absent where it contradicts no single figure. */
        with: id.optional(),
        because: text,
      }),
    )
    .default([]),
});
export type Claim = z.infer<typeof claimSchema>;

export const claimsSchema = z
  .strictObject({
    schema: z.literal("ztbench/claims/1"),
    source: z.strictObject({
      id: z.string().regex(/^[A-Z]$/, "must be one capital letter"),
      title: text,
      description: text,
      /** Day of publication, where it is known. */
      date: z.iso.date().optional(),
    }),
    /** Hardware, versions and settings that hold for all its measurements: subject to text. */
    stated: z.record(text, text).default({}),
    /** What is told for none of its measurements. */
    notStated: z.array(z.enum(claimGaps)).default([]),
    /** Formulas that the source defines its figures by. */
    definitions: z.array(z.strictObject({ name: text, formula: text, citation: text })).default([]),
    claims: z.array(claimSchema).min(1),
  })
  .superRefine(({ claims }, context) => {
    const places = new Map<string, number>();
    claims.forEach((claim, index) => {
      const complain = (path: (string | number)[], message: string) => {
        context.addIssue({ code: "custom", path: ["claims", index, ...path], message });
      };
      const first = places.get(claim.id);
      if (first === undefined) places.set(claim.id, index);
      else complain(["id"], `id is already used by claims[${first}]`);
      const needsFigure = claim.kind !== "security" && !claim.missing.includes("figures");
      if (claim.quantity === undefined && needsFigure) {
        complain(["quantity"], 'must be given, or "figures" be among what is missing');
      }
      claim.contradictions.forEach(({ with: other }, place) => {
        if (other === undefined) return;
        const found = claims.find((candidate) => candidate.id === other);
        const path = ["contradictions", place, "with"];
        if (found === undefined) complain(path, "must be the id of a claim");
        else if (!found.contradictions.some((back) => back.with === claim.id)) {
          complain(path, `must be told both ways, ${other} does not name ${claim.id}`);
        }
      });
    });
  });
export type Claims = z.infer<typeof claimsSchema>;
