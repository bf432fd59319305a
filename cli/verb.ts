/** What a verb of the command line is, and how its arguments are read. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { Failure } from "../contracts/failure.ts";

export type Io = {
  /** The result, on standard output. */
  readonly print: (text: string) => void;
  /** Progress and warnings, on standard error. */
  readonly say: (line: string) => void;
  /** Ends when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
};

export type Verb = {
  readonly summary: string;
  readonly usage: string;
  /** @returns the exit code */
  readonly run: (argv: readonly string[], io: Io) => Promise<number>;
};

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * Reads flags and positional arguments.
 *
 * @throws Failure `usage` for anything that the verb does not know
 */
export function readArguments<T extends Options>(
  argv: readonly string[],
  options: T,
  positionals: { readonly least: number; readonly most: number },
  usage: string,
) {
  const hint = `usage: ${usage.split("\n")[0] ?? ""}`;
  const parsed = parse(argv, options, hint);
  const count = parsed.positionals.length;
  if (parsed.positionals.includes("")) {
    throw new Failure("usage", "arguments: one is empty, none may be", { hint });
  }
  if (count < positionals.least || count > positionals.most) {
    const wanted =
      positionals.least === positionals.most
        ? `${positionals.least}`
        : `${positionals.least} to ${positionals.most}`;
    throw new Failure("usage", `arguments: ${count} given, ${wanted} wanted`, { hint });
  }
  return parsed;
}

function parse<T extends Options>(argv: readonly string[], options: T, hint: string) {
  let parsed;
  try {
    const args = [...argv];
    parsed = parseArgs({ args, options, allowPositionals: true, strict: true, tokens: true });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const first = message.split(/\.\s/)[0] ?? message;
    throw new Failure("usage", `arguments: ${first}`, { hint, cause });
  }
  const given = new Set<string>();
  for (const token of parsed.tokens) {
    if (token.kind !== "option") continue;
    if (given.has(token.name)) {
      throw new Failure("usage", `arguments: --${token.name} is given twice, once wanted`, {
        hint,
      });
    }
    given.add(token.name);
    if (token.value === "") {
      throw new Failure("usage", `arguments: --${token.name} has an empty value`, { hint });
    }
  }
  return parsed;
}
