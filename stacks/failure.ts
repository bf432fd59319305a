/** How a failure becomes a message of `pulumi up`. */
import * as pulumi from "@pulumi/pulumi";
import type { Failure } from "../contracts/failure.ts";

/** The message with its code's name and next step, without a stack trace. */
export function shownFailure(failure: Failure): pulumi.RunError {
  const hint = failure.hint === undefined ? "" : `\n  next: ${failure.hint}`;
  const shown = new pulumi.RunError(`${failure.message} [${failure.code}]${hint}`);
  delete shown.stack;
  return shown;
}
