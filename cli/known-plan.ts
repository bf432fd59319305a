/** What a plan must hold beyond its schema: topologies, runtimes and parameters that there are. */
import { Failure } from "../contracts/failure.ts";
import { planSchema, type Treatment } from "../contracts/plan.ts";
import { catalogue, topologyNamed } from "../topologies/catalogue.ts";
import { readParameters } from "../topologies/parameters.ts";

/** A plan that can be deployed as it stands: else it would break off in the middle. */
export const knownPlanSchema = planSchema.superRefine((plan, context) => {
  plan.treatments.forEach((treatment, index) => {
    const complain = (key: keyof Treatment, message: string) => {
      context.addIssue({ code: "custom", path: ["treatments", index, key], message });
    };
    const { topology, parameters, runtime } = treatment;
    if (!Object.hasOwn(catalogue, topology)) {
      complain("topology", `must be one of ${Object.keys(catalogue).join(", ")}`);
      return;
    }
    const known = topologyNamed(topology);
    if (!known.runtimes.includes(runtime)) {
      complain("runtime", `must be one of ${known.runtimes.join(", ")}`);
    }
    try {
      readParameters(known, parameters, runtime);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      complain("parameters", error.message.replaceAll("\n", "; "));
    }
  });
});
