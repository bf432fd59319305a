/** What can be wrong with renewals of certificates, each with the one gate that it trips. */
import type { GateInput } from "../../analysis/gates/input.ts";

export type RotationFault = {
  readonly what: string;
  readonly gate: "rotations";
  readonly outcome: "invalid" | "unavailable";
  readonly input: GateInput;
};

/** A run of proxies that were given so many certificates of that life time, one number each. */
export function renewing(
  input: GateInput,
  certificateSeconds: number,
  renewals: readonly (number | undefined)[],
): GateInput {
  const { record, proxies } = input;
  const [proxy] = proxies;
  if (proxy === undefined) throw new Error("no proxy to change");
  const { errors, workers, cache } = proxy;
  const parameters = { ...record.deployment.parameters, certificateSeconds };
  return {
    ...input,
    record: { ...record, deployment: { ...record.deployment, parameters } },
    proxies: renewals.map((count, index) => ({
      unit: `ztbench-sidecar-${index + 1}.service`,
      ...{ errors, workers, cache },
      ...(count === undefined ? {} : { renewals: count }),
    })),
  };
}

/** Of a run of 120 s: certificates of 20 s are renewed 10 to 12 times, those of a day never. */
export function rotationFaults(good: GateInput): readonly RotationFault[] {
  const day = 86_400;
  const fault = (
    what: string,
    input: GateInput,
    outcome: RotationFault["outcome"] = "invalid",
  ): RotationFault => ({ what, gate: "rotations", outcome, input });
  return [
    fault("a rotation that did not take place", renewing(good, 20, [0, 0])),
    fault("a rotation of fewer events than fall due", renewing(good, 20, [11, 9])),
    fault("a rotation of more events than certificates last for", renewing(good, 20, [11, 13])),
    fault("a proxy that does not count beside one that does", renewing(good, 20, [11, undefined])),
    fault("a placebo in which certificates were renewed", renewing(good, day, [0, 1])),
    fault("proxies that do not count", renewing(good, 20, [undefined])),
    fault("a placebo that does not count", renewing(good, day, [undefined]), "unavailable"),
    fault("certificates that may or may not be renewed in a run", renewing(good, 180, [0, 0])),
  ];
}
