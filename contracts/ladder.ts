/** How a plan asks for layers of cost: which treatments are the rungs of a ladder. */
import { z } from "zod";

/** Each rung adds one thing to the one before. */
export const rungs = {
  R0: "direct, on the hosts' network",
  R1: "on the pods' network, no proxy",
  R2: "proxies that pass bytes on, plaintext",
  R3: "proxies that speak HTTP, plaintext, no authentication",
  R4: "with mutual TLS",
  R5: "with local policy",
  R6: "with remote policy, its answers cached",
  R7: "with remote policy, nothing cached",
} as const;
export type RungId = keyof typeof rungs;
export const rungIds = Object.keys(rungs) as readonly RungId[];

/** What a step between two rungs is the cost of. */
export const layers = [
  { layer: "infrastructure", from: "R0", to: "R1" },
  { layer: "proxy forwarding", from: "R1", to: "R3" },
  { layer: "transport crypto", from: "R3", to: "R4" },
  { layer: "local policy", from: "R4", to: "R5" },
  { layer: "remote policy", from: "R5", to: "R6" },
  { layer: "cold policy", from: "R6", to: "R7" },
] as const satisfies readonly { layer: string; from: RungId; to: RungId }[];
export type Layer = (typeof layers)[number]["layer"];

const label = z.string().min(1);

/** Requests that a connection carries before it is closed; 0: it is never closed. */
const requestsPerConnection = z.int().nonnegative().max(1_000_000);

export const ladderSchema = z
  .strictObject({
    /** Treatments by rung; what is absent is told as not measured. */
    rungs: z.partialRecord(z.enum(rungIds), label),
    /** Treatment with policy but without crypto: the fourth corner of crypto and policy. */
    policyWithoutCrypto: label.optional(),
    /**
     * Treatments that differ in how many requests a connection carries, with and without TLS, and
     * with TLS whose handshakes are all full ones.
     */
    handshake: z
      .array(
        z.strictObject({ requestsPerConnection, tls: label, full: label.optional(), plain: label }),
      )
      .min(2, "must have two counts or more")
      .optional(),
  })
  .superRefine(({ rungs: given, handshake }, context) => {
    if (Object.keys(given).length < 2 || given.R0 === undefined) {
      context.addIssue({
        code: "custom",
        path: ["rungs"],
        message: "must have R0 and one rung more",
      });
    }
    const counts = (handshake ?? []).map((arm) => arm.requestsPerConnection);
    if (new Set(counts).size !== counts.length) {
      const message = "must have each requestsPerConnection once";
      context.addIssue({ code: "custom", path: ["handshake"], message });
    }
    const closing = (handshake ?? []).filter((arm) => arm.requestsPerConnection > 0);
    const some = closing.some(({ full }) => full !== undefined);
    if (some && closing.some(({ full }) => full === undefined)) {
      const message = "must name full in every arm that closes connections, or in none";
      context.addIssue({ code: "custom", path: ["handshake"], message });
    }
    if ((handshake ?? []).some((arm) => arm.requestsPerConnection === 0 && arm.full)) {
      const message =
        "must not name full where connections are never closed: tls has no handshakes";
      context.addIssue({ code: "custom", path: ["handshake"], message });
    }
  });
export type Ladder = z.infer<typeof ladderSchema>;

/** Labels of all treatments that a ladder needs. */
export function labelsOf({ rungs: given, policyWithoutCrypto, handshake = [] }: Ladder): string[] {
  return [
    ...Object.values(given),
    ...(policyWithoutCrypto === undefined ? [] : [policyWithoutCrypto]),
    ...handshake.flatMap(({ tls, full, plain }) => [tls, full ?? tls, plain]),
  ];
}
