/** Runs one program of the machine and turns its failure into a message. */
import { $ } from "zx";
import { Failure } from "../../contracts/failure.ts";

export type CommandOptions = {
  readonly input?: string;
  readonly timeoutSeconds?: number;
};

export type CommandResult = { readonly exitCode: number; readonly output: string };

const defaultTimeoutSeconds = 30;

/** Environment for programs of the machine: stable language, administrators' programs found. */
export function commandEnvironment(): NodeJS.ProcessEnv {
  const path = process.env["PATH"] ?? "";
  return { ...process.env, LC_ALL: "C", PATH: `${path}:/usr/sbin:/usr/bin:/sbin:/bin` };
}

/** Runs a program; a non-zero exit is a result, not an error. `output` is stdout, then stderr. */
export async function attempt(
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const result = await $({
    quiet: true,
    nothrow: true,
    env: commandEnvironment(),
    input: options.input ?? "",
    timeout: `${options.timeoutSeconds ?? defaultTimeoutSeconds}s`,
  })`${argv}`;
  return { exitCode: result.exitCode ?? 1, output: result.stdout + result.stderr };
}

/**
 * Runs a program that must succeed and returns what it printed.
 * @throws Failure `testbed` with the program's last lines
 */
export async function demand(
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { exitCode, output } = await attempt(argv, options);
  if (exitCode !== 0) {
    throw new Failure(
      "testbed",
      `${argv[0] ?? "command"}: exit code ${exitCode}, 0 expected: ${lastLines(output, 5)}`,
    );
  }
  return output;
}

/** The last lines of a text, on one line. */
export function lastLines(text: string, count: number): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.slice(-count).join(" | ");
}
