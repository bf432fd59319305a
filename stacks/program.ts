/** Finds the program of the current stack and turns failures into messages for the user. */
import * as pulumi from "@pulumi/pulumi";
import { Failure } from "../contracts/failure.ts";
import { hostsStack } from "./hosts.ts";
import { topologyStack } from "./topology.ts";

/** The stack that prepares the hosts; every other stack is a topology. */
const hostsStackName = "hosts";

/**
 * Runs the program of the current stack.
 *
 * @returns the stack's outputs
 * @throws pulumi.RunError without a stack trace, for failures that the user can mend
 */
export async function program(): Promise<Record<string, unknown>> {
  try {
    const stack = pulumi.getStack();
    return stack === hostsStackName ? await hostsStack() : await topologyStack(stack);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const hint = error.hint === undefined ? "" : `\n  next: ${error.hint}`;
    const shown = new pulumi.RunError(`${error.message} [${error.code}]${hint}`);
    delete shown.stack;
    throw shown;
  }
}
