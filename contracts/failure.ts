/** The one error class that users are meant to see; anything else that reaches them is a bug. */

/** Exit codes of `./ztbench`, by what went wrong. `pulumi` itself exits 1 on any error. */
export const exitCodes = {
  bug: 1,
  usage: 2,
  document: 3,
  testbed: 4,
  load: 5,
  budget: 6,
  comparison: 7,
  interrupted: 130,
} as const;

export type FailureCode = keyof typeof exitCodes;

export type FailureOptions = {
  /** What to do next, as a sentence or a command. */
  readonly hint?: string;
  readonly cause?: unknown;
};

/**
 * A failure with a message for the user: `subject: problem, value seen, values allowed`,
 * prefixed with `file:line:column:` when it comes from a document.
 */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly hint: string | undefined;

  constructor(code: FailureCode, message: string, options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "Failure";
    this.code = code;
    this.hint = options.hint;
  }
}
