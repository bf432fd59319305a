/** Runs rendered bash programs on this machine, with functions replaced so that nothing is touched. */
import { spawnSync } from "node:child_process";

export type BashResult = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

/** @param argument first argument of the program, as hosts get `create` and `remove` */
export function runBash(program: string, argument?: string): BashResult {
  const argv = argument === undefined ? ["-s"] : ["-s", argument];
  const result = spawnSync("bash", argv, { input: program, encoding: "utf8", timeout: 30_000 });
  return { exitCode: result.status ?? -1, stdout: result.stdout, stderr: result.stderr };
}

/** Puts bash text before the last line of a program, which is its call, to replace functions. */
export function override(program: string, ...text: string[]): string {
  const lines = program.trimEnd().split("\n");
  return [...lines.slice(0, -1), ...text, lines.at(-1), ""].join("\n");
}
