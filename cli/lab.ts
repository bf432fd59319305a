/** The verb `lab`: raises, shows and removes the hosts inside this machine. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stringify } from "yaml";
import { Failure } from "../contracts/failure.ts";
import type { Testbed } from "../contracts/testbed.ts";
import { layLab, refuseNetwork } from "../hosts/lab/layout.ts";
import { labDown, labStatus, labUp } from "../hosts/lab/lab.ts";
import type { LabProfile } from "../hosts/lab/profile.ts";
import { initTestbed, makeStack, stackNames } from "./init.ts";
import { callEngine, engineFailure, listStacks } from "./pulumi.ts";
import { type Io, readArguments, type Verb } from "./verb.ts";
import { existsWorkspace, labTestbedFile, type Workspace, workspaceOf } from "./workspace.ts";

const usage = `./ztbench lab up [--kubernetes] [--stock] | down [--force] | status [--json]

  up      raise client, gateway and server inside this machine and make them the current testbed
  down    remove them and everything that up made; refused while stacks hold resources,
          unless --force, which forgets what those stacks hold
  status  what is up

  --kubernetes    hosts that can be nodes of a cluster; pulumi up -s cluster then makes one
  --stock         hosts keep what their distribution sets (tuning profile stock instead of repro)
  --name NAME     another lab beside the usual one; also the name of its testbed
  --network N     its management subnet is 198.18.(16+N).0/24; 0 if not given`;

/** Which lab is meant; several can be up on one machine. */
type Choice = {
  readonly name: string;
  readonly network: number;
  readonly profile: LabProfile;
  readonly tuningProfile: Testbed["tuningProfile"];
};

export const lab: Verb = {
  summary: "up, down or status of three hosts inside this machine",
  usage,
  async run(argv, io) {
    const options = {
      json: { type: "boolean" },
      force: { type: "boolean" },
      name: { type: "string" },
      network: { type: "string" },
      kubernetes: { type: "boolean" },
      stock: { type: "boolean" },
    } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const [action] = positionals;
    const profile: LabProfile = values.kubernetes === true ? "kubernetes" : "native";
    const network = readNetwork(values.network ?? "0");
    const tuningProfile = values.stock === true ? ("stock" as const) : ("repro" as const);
    const choice = { name: values.name ?? "lab", network, profile, tuningProfile };
    // Before anything is looked at: the name becomes part of paths.
    layLab(choice.name, choice.network);
    switch (action ?? "") {
      case "up":
        return up(choice, io, values.json === true);
      case "down":
        return down(choice, io, values.force === true);
      case "status":
        return status(choice, io, values.json === true);
      default:
        throw new Failure("usage", `lab: unknown action, "${action ?? ""}", up, down or status`, {
          hint: "./ztbench lab --help",
        });
    }
  },
};

/** Decimal digits only: 0x3 or 1e0 would be numbers as well, but nobody's intention. */
function readNetwork(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : refuseNetwork(JSON.stringify(text));
}

async function up(choice: Choice, io: Io, json: boolean): Promise<number> {
  const { tuningProfile, ...wanted } = choice;
  const raised = await labUp({ ...wanted, progress: io.say });
  // The lab itself is the same: hosts are tuned by their stack, from this document.
  const testbed: Testbed = { ...raised.testbed, tuningProfile };
  for (const warning of raised.warnings) io.say(`warning: ${warning.message}`);
  const file = labTestbedFile(choice.name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, stringify(testbed));
  await initTestbed(file);
  if (json) io.print(JSON.stringify({ testbed, warnings: raised.warnings }));
  else {
    io.say("the lab is up and is the current testbed");
    const cluster = choice.profile === "kubernetes" ? " && pulumi up -s cluster" : "";
    io.say(`  next: eval "$(./ztbench env)" && pulumi up -s hosts${cluster}`);
  }
  return 0;
}

async function down(choice: Choice, io: Io, force: boolean): Promise<number> {
  if (existsWorkspace(choice.name)) await releaseStacks(workspaceOf(choice.name), force, io);
  await labDown({ ...choice, progress: io.say });
  return 0;
}

/** Stacks that hold resources would otherwise believe in hosts that are gone. */
async function releaseStacks(workspace: Workspace, force: boolean, io: Io): Promise<void> {
  // The stack itself counts as one resource while anything is deployed.
  const held = [...(await listStacks(workspace))].filter(([, resources]) => resources > 0);
  if (held.length === 0) return;
  const names = held.map(([name, resources]) => `${name} (${resources} resources)`).join(", ");
  if (!force) {
    // What stands on another goes first.
    const destroys = held
      .sort(([a], [b]) => stackNames.indexOf(b) - stackNames.indexOf(a))
      .map(([name]) => `pulumi destroy -s ${name}`);
    throw new Failure("testbed", `lab: stacks still hold resources, ${names}, none allowed`, {
      hint: `${destroys.join(" && ")}, or ./ztbench lab down --force`,
    });
  }
  for (const [name] of held) {
    const args = ["stack", "rm", name, "--force", "--yes", "--preserve-config"];
    const removed = await callEngine(workspace, args);
    if (removed.exitCode !== 0) throw engineFailure(`stack rm ${name}`, removed);
    await makeStack(workspace, name);
    io.say(`forgot what stack ${name} held`);
  }
}

async function status(choice: Choice, io: Io, json: boolean): Promise<number> {
  const found = await labStatus(choice);
  if (json) {
    io.print(JSON.stringify(found));
    return 0;
  }
  const profile = found.profile === undefined ? "" : `, profile ${found.profile}`;
  io.print(`lab: ${found.state}${profile}`);
  for (const host of found.hosts) {
    const process = host.supervisor === undefined ? "not running" : `process ${host.supervisor}`;
    io.print(`  ${host.role.padEnd(8)} ${process}, ${host.answers ? "answers" : "no answer"}`);
  }
  for (const part of found.missing) io.print(`  missing: ${part}`);
  if (found.state === "up") io.print(`  by hand: ssh -F ${found.sshConfig} client`);
  else for (const trace of found.traces) io.print(`  left: ${trace}`);
  return 0;
}
