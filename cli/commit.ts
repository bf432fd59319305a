/** Which commit of ztbench is running. */
import { $ } from "zx";
import { root } from "./workspace.ts";

export type Commit = { readonly id: string; readonly dirty: boolean };

/** The commit of this checkout; `unknown` and dirty where there is no git to ask. */
export async function readCommit(): Promise<Commit> {
  const shell = $({ cwd: root, nothrow: true, quiet: true });
  const head = await shell`git rev-parse HEAD`;
  if (head.exitCode !== 0) return { id: "unknown", dirty: true };
  const changes = await shell`git status --porcelain`;
  return { id: head.stdout.trim(), dirty: changes.stdout.trim() !== "" };
}
