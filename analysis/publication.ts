/** What may be published of a bundle: what its plan says, less what testbed and bundle forbid. */
import type { Manifest } from "../contracts/manifest.ts";
import type { Plan, Publication } from "../contracts/plan.ts";

export type Publishable = {
  readonly level: Publication;
  /** What goes above every table; absent where all may be published. */
  readonly banner?: string;
};

/** Never more than the plan declared before the first request. */
export function publicationOf(
  plan: Pick<Plan, "publishes" | "treatments">,
  { testbed, commit, dirty }: Pick<Manifest, "testbed" | "commit" | "dirty">,
): Publishable {
  const declared = plan.publishes ?? "nothing";
  if (testbed.class === "lab") {
    // Nodes, control plane and pods share the CPUs of one machine: even ratios mean little.
    if (plan.treatments.some(({ runtime }) => runtime === "k3s")) {
      const banner = "lab cluster: function only; its numbers mean nothing, publish none of them";
      return { level: "nothing", banner };
    }
    const use = declared === "nothing" ? "publish nothing of it" : "for internal use";
    return {
      level: declared === "nothing" ? "nothing" : "internal",
      banner: `lab: not comparable to bare metal; ${use}`,
    };
  }
  if (declared === "nothing") {
    return { level: declared, banner: "publish nothing of it: the plan was not made for that" };
  }
  const traceless = dirty || commit === "unknown";
  if (declared === "results" && !traceless) return { level: declared };
  const because = traceless
    ? "it was measured with local changes that nobody can check out"
    : "the plan says so";
  return { level: "internal", banner: `for internal use: ${because}` };
}
