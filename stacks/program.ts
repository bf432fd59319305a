/** Finds the program of the current stack and turns failures into messages for the user. */
import * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";
import { clusterStack } from "./cluster.ts";
import { shownFailure } from "./failure.ts";
import { hostsStack } from "./hosts.ts";
import { topologyStack } from "./topology.ts";

/** Stacks that are no topology: what prepares the hosts, and what puts a cluster on them. */
const foundations: Readonly<Record<string, () => Promise<Record<string, unknown>>>> = {
  hosts: hostsStack,
  cluster: clusterStack,
};

/**
 * Runs the program of the current stack.
 *
 * @returns the stack's outputs
 * @throws pulumi.RunError without a stack trace, for failures that the user can mend
 */
export async function program(): Promise<Record<string, unknown>> {
  try {
    const stack = pulumi.getStack();
    return await (foundations[stack]?.() ?? topologyStack(stack));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw shownFailure(error);
  }
}
