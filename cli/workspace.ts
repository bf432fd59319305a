/** The ignored state of a checkout: passphrase, current testbed, its backend and stack config. */
import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { parseDocument as parseYaml } from "yaml";
import { documentBytesMax, parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { type Testbed, testbedSchema } from "../contracts/testbed.ts";
import { resolveIdentities } from "../hosts/identity.ts";

export const root = path.resolve(import.meta.dirname, "..");

const state = path.join(root, ".ztbench");
const current = path.join(state, "current");

export type Workspace = {
  readonly testbedName: string;
  /** Directory with everything that belongs to one testbed in this checkout. */
  readonly directory: string;
  /** Where stack states live; `file://` backend of Pulumi. */
  readonly backend: string;
  /** Where Pulumi.<stack>.yaml live. */
  readonly config: string;
  readonly passphraseFile: string;
};

/** The place of a testbed in this checkout, whether or not it is there yet. */
export function workspaceOf(testbedName: string): Workspace {
  const directory = path.join(state, "testbeds", testbedName);
  return {
    testbedName,
    directory,
    backend: path.join(directory, "backend"),
    config: path.join(directory, "config"),
    passphraseFile: path.join(state, "passphrase"),
  };
}

/** Makes the directories and the passphrase, and makes this testbed the current one. */
export function openWorkspace(testbedName: string): Workspace {
  const workspace = workspaceOf(testbedName);
  mkdirSync(workspace.backend, { recursive: true });
  mkdirSync(workspace.config, { recursive: true });
  if (!existsSync(workspace.passphraseFile)) {
    // `wx`: never overwrites, since another passphrase would make every stack unreadable.
    const passphrase = randomBytes(24).toString("base64url");
    writeFileSync(workspace.passphraseFile, passphrase, { mode: 0o600, flag: "wx" });
  }
  refuseForeign();
  const next = `${current}.${process.pid}`;
  symlinkSync(path.relative(state, workspace.directory), next);
  renameSync(next, current);
  return workspace;
}

/** Plain `pulumi` without our environment makes a directory where the link to the testbed goes. */
function refuseForeign(): void {
  const found = lstatSync(current, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink()) return;
  throw new Failure("testbed", `${current}: is not a link to a testbed, made by something else`, {
    hint: `look at what is in it, then remove it: rm -r ${current}`,
  });
}

/**
 * The testbed chosen last.
 *
 * @throws Failure `testbed` if none was chosen yet
 */
export function currentWorkspace(): Workspace {
  refuseForeign();
  if (!existsSync(current)) {
    throw new Failure("testbed", "testbed: none chosen in this checkout yet", {
      hint: "./ztbench lab up, or ./ztbench init TESTBED for hosts of your own",
    });
  }
  return workspaceOf(path.basename(readlinkSync(current)));
}

/** Where the lab's testbed document is written. */
export function labTestbedFile(testbedName: string): string {
  return path.join(workspaceOf(testbedName).directory, "testbed.yaml");
}

/**
 * Reads and validates a testbed document.
 *
 * @throws Failure `document`
 */
export function readTestbed(file: string): Testbed {
  return resolveIdentities(parseDocument(testbedSchema, readText(file), file), file);
}

/**
 * Reads a text file that the user named.
 *
 * @throws Failure `document` if it cannot be read
 */
export function readText(file: string): string {
  let text: string;
  try {
    // A pipe may never end, and a device like /dev/zero never does.
    const info = statSync(file);
    if (!info.isFile()) throw unreadable(file, "it is no plain file");
    if (info.size > documentBytesMax) {
      throw unreadable(file, `it has ${info.size} bytes, at most ${documentBytesMax} allowed`);
    }
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw unreadable(file, (cause as NodeJS.ErrnoException).code ?? String(cause), cause);
  }
  return text;
}

function unreadable(file: string, reason: string, cause?: unknown): Failure {
  const hint = "name a readable file";
  return new Failure("document", `${file}: cannot be read, ${reason}`, { cause, hint });
}

/** Whether this checkout has ever used a testbed of this name. */
export function existsWorkspace(testbedName: string): boolean {
  return existsSync(workspaceOf(testbedName).backend);
}

/** The testbed document that the current testbed's stacks read. */
export function testbedFileOf(workspace: Workspace): string {
  const file = path.join(workspace.config, "Pulumi.hosts.yaml");
  const text = existsSync(file) ? readText(file) : "";
  const config = parseYaml(text).getIn(["config", "ztbench:testbed"]);
  if (typeof config === "string") return config;
  throw new Failure("testbed", `${file}: names no testbed document`, {
    hint: "./ztbench init TESTBED",
  });
}
