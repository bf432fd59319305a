/**
 * Times `up` and `destroy` of every topology on the testbed that is prepared, beside the engine's
 * own floor: as many local commands that do nothing. Usage: bench/deploy.ts [ROUNDS]
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { callEngine, engineFailure, listStacks } from "../cli/pulumi.ts";
import { currentWorkspace, root, type Workspace } from "../cli/workspace.ts";
import { catalogue } from "../topologies/catalogue.ts";

type Times = { readonly up: number; readonly destroy: number };

const rounds = Number(process.argv[2] ?? 3);
const workspace = currentWorkspace();
if (((await listStacks(workspace)).get("hosts") ?? 0) === 0) {
  console.error("bench: hosts are not prepared: make hosts");
  process.exitCode = 4;
} else {
  await compareAll();
}

async function compareAll(): Promise<void> {
  print(["topology", "resources", "up s", "floor s", "destroy s", "floor s"]);
  for (const topology of Object.keys(catalogue)) {
    const measured: Times[] = [];
    const floors: Times[] = [];
    let resources = 0;
    for (let round = 0; round < rounds; round++) {
      const up = await timed(workspace, ["up", "-s", topology]);
      // The stack and the provider are resources of the engine's own.
      resources = ((await listStacks(workspace)).get(topology) ?? 0) - 2;
      measured.push({ up, destroy: await timed(workspace, ["destroy", "-s", topology]) });
      floors.push(await floorOf(resources));
    }
    const [mine, floor] = [median(measured), median(floors)];
    const cells = [mine.up, floor.up, mine.destroy, floor.destroy].map((s) => s.toFixed(2));
    print([topology, String(resources), ...cells]);
  }
}

/** The same number of resources that do nothing, in a project of their own. */
async function floorOf(resources: number): Promise<Times> {
  const directory = mkdtempSync(path.join(tmpdir(), "ztbench-floor-"));
  try {
    mkdirSync(path.join(directory, "backend"));
    symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"));
    writeFileSync(path.join(directory, "package.json"), '{"type":"module"}');
    writeFileSync(
      path.join(directory, "Pulumi.yaml"),
      "name: floor\nmain: main.ts\nruntime:\n  name: nodejs\n" +
        '  options: { typescript: false, nodeargs: "--import tsx" }\n',
    );
    writeFileSync(
      path.join(directory, "main.ts"),
      'import { local } from "@pulumi/command";\n' +
        `for (let i = 0; i < ${resources}; i++) ` +
        'new local.Command(`c${i}`, { create: "true", delete: "true", logging: "none" });\n',
    );
    const own: Workspace = { ...workspace, backend: path.join(directory, "backend") };
    const at = ["--cwd", directory];
    await timed(own, ["stack", "init", "floor", ...at]);
    const up = await timed(own, ["up", "-s", "floor", ...at]);
    return { up, destroy: await timed(own, ["destroy", "-s", "floor", ...at]) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function timed(at: Workspace, args: readonly string[]): Promise<number> {
  const isDeployment = args[0] !== "stack";
  const started = performance.now();
  const done = await callEngine(at, isDeployment ? [...args, "--yes", "--skip-preview"] : args);
  if (done.exitCode !== 0) throw engineFailure(args.join(" "), done);
  return (performance.now() - started) / 1000;
}

function median(times: readonly Times[]): Times {
  const middle = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? NaN;
  return { up: middle(times.map((t) => t.up)), destroy: middle(times.map((t) => t.destroy)) };
}

function print(cells: readonly string[]): void {
  console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(12) : cell.padStart(10))).join(""));
}
