/** Calls the Pulumi engine on the stacks of the current testbed. */
import { existsSync } from "node:fs";
import { $ } from "zx";
import { Failure } from "../contracts/failure.ts";
import { pulumiEnvironment, toolPaths, toolSearchPath } from "../tools/paths.ts";
import { root, type Workspace } from "./workspace.ts";

/** Longest time that one engine operation may take. */
const operationSeconds = 300;

/** The environment that makes `pulumi` use our programs and this testbed's backend. */
export function engineEnvironment(workspace: Workspace): Record<string, string> {
  return pulumiEnvironment(root, {
    stateDirectory: workspace.backend,
    passphraseFile: workspace.passphraseFile,
  });
}

export type EngineResult = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

export type CallOptions = {
  /** Beside the engine's own environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Makes the engine stop in order, as Ctrl-C does. */
  readonly signal?: AbortSignal;
};

/**
 * Path of the engine's program, for callers that must know before they change anything.
 *
 * @throws Failure `testbed` if it is not installed
 */
export function requireEngine(): string {
  const { pulumi } = toolPaths(root);
  if (existsSync(pulumi)) return pulumi;
  throw new Failure("testbed", "pulumi: not installed in this checkout", { hint: "make tools" });
}

/**
 * Runs `pulumi` with arguments and waits for it.
 *
 * @throws Failure `testbed` if the engine is not installed
 */
export async function callEngine(
  workspace: Workspace,
  args: readonly string[],
  options: CallOptions = {},
): Promise<EngineResult> {
  const pulumi = requireEngine();
  // An agent or a cluster of the user's own must not leak into what is deployed.
  const ambient = { ...process.env };
  delete ambient["SSH_AUTH_SOCK"];
  delete ambient["KUBECONFIG"];
  // Detached: Ctrl-C reaches ztbench alone, which then ends the engine's work in order.
  const shell = $({
    cwd: root,
    nothrow: true,
    quiet: true,
    detached: true,
    timeout: `${operationSeconds}s`,
    env: {
      ...ambient,
      ...engineEnvironment(workspace),
      ...options.environment,
      PATH: toolSearchPath(root, process.env["PATH"]),
    },
  });
  const running = shell`${pulumi} ${args} --non-interactive`;
  const stop = () => void running.kill("SIGINT");
  options.signal?.addEventListener("abort", stop, { once: true });
  const done = await running;
  options.signal?.removeEventListener("abort", stop);
  return { exitCode: done.exitCode ?? 1, stdout: done.stdout, stderr: done.stderr };
}

/** Names of the stacks in the backend with the number of resources that each holds. */
export async function listStacks(workspace: Workspace): Promise<Map<string, number>> {
  const listed = await callEngine(workspace, ["stack", "ls", "--json"]);
  if (listed.exitCode !== 0) throw engineFailure("stack ls", listed);
  const rows = JSON.parse(listed.stdout) as { name: string; resourceCount?: number }[];
  return new Map(rows.map((row) => [row.name, row.resourceCount ?? 0]));
}

/** A failed call as an error with the engine's own words. */
export function engineFailure(what: string, result: EngineResult): Failure {
  const words = `${result.stderr}\n${result.stdout}`
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const told = words.filter((line) => line.startsWith("error:"));
  const shown = (told.length > 0 ? told : words.slice(-8)).join("\n  ");
  return new Failure("testbed", `pulumi ${what}: exit ${result.exitCode}, ${shown}`);
}
