/** Says what is installed, what is missing, what this machine can do, and what mends it. */
import { existsSync, readFileSync } from "node:fs";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { labStatus } from "../hosts/lab/lab.ts";
import { missingPackages } from "../tools/debian.ts";
import { type InstalledProgram, readToolsManifest } from "../tools/manifest.ts";
import type { VersionSet } from "../tools/version-entry.ts";
import { articleVersion } from "../tools/versions.ts";
import { readArguments, type Verb } from "./verb.ts";
import { currentWorkspace, root } from "./workspace.ts";

export type Finding = {
  readonly subject: string;
  readonly state: "ok" | "note" | "missing";
  readonly seen: string;
  /** The command that mends it. */
  readonly mend?: string;
};

const usage = `./ztbench doctor [--json]

Exits 0 if nothing is missing, 4 otherwise. Changes nothing.`;

export const doctor: Verb = {
  summary: "what is installed, what is missing, what this machine can do",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values } = readArguments(argv, options, { least: 0, most: 0 }, usage);
    const findings = await examine();
    io.print(values.json === true ? JSON.stringify(findings, null, 2) : render(findings));
    return findings.some((finding) => finding.state === "missing") ? exitCodes.testbed : 0;
  },
};

async function examine(): Promise<Finding[]> {
  return [
    ...machine(),
    ...(await packages()),
    ...(await programs()),
    ...(await lab()),
    ...testbed(),
  ];
}

function machine(): Finding[] {
  const isRoot = process.getuid?.() === 0;
  const cpus = readFileSync("/sys/devices/system/cpu/online", "utf8").trim();
  const init = readFileSync("/proc/1/comm", "utf8").trim();
  return [
    { subject: "Node.js", state: "ok", seen: process.version },
    { subject: "CPUs", state: "note", seen: `${cpus} online` },
    { subject: "PID 1", state: "note", seen: init },
    isRoot
      ? { subject: "root", state: "ok", seen: "yes, the lab can be raised" }
      : {
          subject: "root",
          state: "missing",
          seen: "no, the lab needs it (bare metal does not)",
          mend: "run as root: sudo -E ./ztbench doctor",
        },
  ];
}

async function packages(): Promise<Finding[]> {
  const missing = await missingPackages(["tools", "lab"]);
  if (missing.length === 0) return [{ subject: "Debian packages", state: "ok", seen: "all there" }];
  const names = missing.map((wanted) => wanted.name).join(", ");
  return [{ subject: "Debian packages", state: "missing", seen: names, mend: "make tools" }];
}

async function programs(): Promise<Finding[]> {
  try {
    const manifest = await readToolsManifest(root);
    return manifest.programs.map((program) => describe(program, manifest.set));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [{ subject: "programs", state: "missing", seen: error.message, mend: "make tools" }];
  }
}

function describe(program: InstalledProgram, set: VersionSet): Finding {
  const articles = articleVersion(program.name);
  const differs = set !== "era" && articles !== undefined && articles !== program.version;
  const notes = [
    program.author === "stand-in" ? "our stand-in; upstream: not exercised here" : program.author,
    ...(differs ? [`the articles used ${articles}`] : []),
  ];
  return { subject: program.name, state: "ok", seen: `${program.version} (${notes.join("; ")})` };
}

async function lab(): Promise<Finding[]> {
  const { state, warnings, missing } = await labStatus({ name: "lab", network: 0 });
  const mend = "./ztbench lab up";
  const seen = state === "broken" ? `broken, lacks ${missing.join(", ")}` : state;
  const found: Finding = { subject: "lab", state: "note", seen };
  return [
    state === "up" ? found : { ...found, mend },
    ...warnings.map((warning): Finding => ({
      subject: "lab",
      state: "note",
      seen: warning.message,
    })),
  ];
}

function testbed(): Finding[] {
  try {
    const workspace = currentWorkspace();
    const isThere = existsSync(workspace.backend);
    return [{ subject: "testbed", state: isThere ? "ok" : "note", seen: workspace.testbedName }];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const mend = error.hint === undefined ? {} : { mend: error.hint };
    return [{ subject: "testbed", state: "note", seen: "none chosen yet", ...mend }];
  }
}

function render(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map((finding) => finding.subject.length));
  const rows = findings.map((finding) => {
    const row = `${finding.state.padEnd(7)}  ${finding.subject.padEnd(width)}  ${finding.seen}`;
    return finding.mend === undefined ? row : `${row}\n${" ".repeat(width + 11)}→ ${finding.mend}`;
  });
  return rows.join("\n");
}
