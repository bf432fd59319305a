/** Finds the program of the current stack and turns failures into messages for the user. */
import * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";
import { shownFailure } from "./failure.ts";

/**
 * Programs by stack; every other stack is a topology. Each is loaded when it is wanted: the library
 * for Kubernetes alone takes seconds, and hosts do not need it.
 */
const foundations: ReadonlyMap<string, () => Promise<Record<string, unknown>>> = new Map([
  ["hosts", async () => (await import("./hosts.ts")).hostsStack()],
  ["cluster", async () => (await import("./cluster.ts")).clusterStack()],
]);

async function topology(stack: string): Promise<Record<string, unknown>> {
  return (await import("./topology.ts")).topologyStack(stack);
}

/**
 * Runs the program of the current stack.
 *
 * @returns the stack's outputs
 * @throws pulumi.RunError without a stack trace, for failures that the user can mend
 */
export async function program(): Promise<Record<string, unknown>> {
  try {
    const stack = pulumi.getStack();
    return await (foundations.get(stack)?.() ?? topology(stack));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw shownFailure(error);
  }
}
