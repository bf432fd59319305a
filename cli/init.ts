/** Makes backend, passphrase, stacks and their config for a testbed, so that plain pulumi works. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { parseDocument as parseYaml } from "yaml";
import { catalogue } from "../topologies/catalogue.ts";
import { callEngine, engineFailure, listStacks, requireEngine } from "./pulumi.ts";
import { readArguments, type Verb } from "./verb.ts";
import { openWorkspace, readTestbed, type Workspace } from "./workspace.ts";

/** Every stack of a testbed: the hosts, what runs pods on them, and one per topology. */
export const stackNames: readonly string[] = ["hosts", "cluster", ...Object.keys(catalogue)];

/**
 * Prepares a testbed in this checkout; what is there already stays as it is.
 *
 * @param file the testbed document; the stacks read it again at each `pulumi up`
 */
export async function initTestbed(file: string): Promise<Workspace> {
  const testbed = readTestbed(file);
  requireEngine();
  const workspace = openWorkspace(testbed.name);
  const present = await listStacks(workspace);
  for (const stack of stackNames) {
    if (!present.has(stack)) await makeStack(workspace, stack);
    configure(workspace, stack, path.resolve(file));
  }
  return workspace;
}

/** Makes an empty stack. */
export async function makeStack(workspace: Workspace, stack: string): Promise<void> {
  const made = await callEngine(workspace, ["stack", "init", stack, "--no-select"]);
  if (made.exitCode !== 0) throw engineFailure(`stack init ${stack}`, made);
}

function configure(workspace: Workspace, stack: string, testbedFile: string): void {
  const file = path.join(workspace.config, `Pulumi.${stack}.yaml`);
  const document = parseYaml(existsSync(file) ? readFileSync(file, "utf8") : "{}\n");
  document.setIn(["config", "ztbench:testbed"], testbedFile);
  if (!document.hasIn(["config", "ztbench:owner"])) {
    const nonce = randomBytes(4).toString("hex");
    document.setIn(["config", "ztbench:owner"], `${hostname()}/${workspace.testbedName}/${nonce}`);
  }
  writeFileSync(file, document.toString());
}

const usage = `./ztbench init TESTBED

TESTBED is a testbed document, e.g. a copy of testbeds/rack.example.yaml.`;

export const init: Verb = {
  summary: "make backend, passphrase and stacks for a testbed document",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const workspace = await initTestbed(positionals[0] ?? "");
    if (values.json === true) {
      io.print(JSON.stringify({ testbed: workspace.testbedName, stacks: stackNames }));
    } else {
      io.print(
        `testbed ${workspace.testbedName} is the current one; stacks: ${stackNames.join(", ")}`,
      );
      io.print('next: eval "$(./ztbench env)" && pulumi up -s hosts');
    }
    return 0;
  },
};
