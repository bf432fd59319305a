/** Runs scripts on a host over SSH as Pulumi resources: the one door to every host. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { remote, type types } from "@pulumi/command";
import * as pulumi from "@pulumi/pulumi";
import type { Host } from "../contracts/testbed.ts";
import { Failure } from "../contracts/failure.ts";
import { quote } from "./shell.ts";

/** What is done to a host and how it is undone, as bodies of bash functions. */
export type HostScript = {
  readonly create: string;
  /** Must succeed when there is nothing left to undo. */
  readonly remove?: string;
  /** Bash functions and data that both use. */
  readonly prelude?: string;
};

export type HostCommandArgs = {
  readonly host: Host;
  /** Boot of the lab that the command belongs to; a new boot deploys anew. */
  readonly instance: string | undefined;
  readonly script: HostScript;
  /** Bound of create and of remove, each. */
  readonly timeoutSeconds: number;
  /** Show what the script says on standard error even if it succeeds. */
  readonly reports?: boolean;
  /** Digests of what the command builds on: when one changes, it is undone and done anew. */
  readonly after?: readonly string[];
  /** Bash variables set before all else, e.g. to what other commands have printed. */
  readonly variables?: Readonly<Record<string, pulumi.Input<string>>>;
};

export type HostCopyArgs = {
  readonly host: Host;
  readonly instance: string | undefined;
  /** Directory on this machine, copied with all that is in it. */
  readonly source: string;
  /** Directory on the host that gets the contents; nothing removes it. */
  readonly target: string;
  readonly after?: readonly string[];
};

/**
 * The connection to a host, its key pinned.
 *
 * @throws Failure `testbed` if the private key file cannot be read
 */
export function connectionTo(host: Host): types.input.remote.ConnectionArgs {
  return {
    host: host.managementAddress,
    port: host.managementPort,
    user: host.user,
    hostKey: host.hostKey,
    privateKey: readIdentity(host),
    // About 4 s of refused connections: an absent host is an answer, not something to wait for.
    dialErrorLimit: 6,
    perDialTimeout: 5,
  };
}

function readIdentity(host: Host): string {
  try {
    return readFileSync(host.identityFile, "utf8");
  } catch (cause) {
    throw new Failure(
      "testbed",
      `host ${host.name}: identityFile cannot be read, found ${host.identityFile}`,
      { cause, hint: "name a readable private key in the testbed document" },
    );
  }
}

/** The program that bash reads on standard input; its first argument chooses the function. */
export function renderHostScript(
  script: HostScript,
  variables: Readonly<Record<string, string>> = {},
): string {
  return [
    "set -euo pipefail",
    "export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ...Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`),
    script.prelude ?? "",
    `create() {\n${script.create}\n}`,
    `remove() {\n${script.remove ?? ":"}\n}`,
    '"$1"',
    "",
  ].join("\n");
}

/**
 * A script on a host, with its undoing. Any change undoes the old one before the new one is done,
 * since a changed command would otherwise never run the `delete` of its former self. A changed
 * connection alone runs `create` again, so `create` must be idempotent.
 */
export function hostCommand(
  name: string,
  args: HostCommandArgs,
  options: pulumi.CustomResourceOptions = {},
): remote.Command {
  const { script, variables } = args;
  const stdin =
    variables === undefined
      ? renderHostScript(script)
      : pulumi.output(variables).apply((values) => renderHostScript(script, values));
  const run = (verb: string) => `timeout ${args.timeoutSeconds} bash -s ${verb}`;
  return new remote.Command(
    name,
    {
      connection: connectionTo(args.host),
      create: run("create"),
      ...(args.script.remove === undefined ? {} : { delete: run("remove") }),
      stdin,
      triggers: [...commonTriggers(args), pulumi.output(stdin).apply(digestOf)],
      addPreviousOutputInEnv: false,
      logging: args.reports === true ? "stderr" : "none",
    },
    { ...options, deleteBeforeReplace: true },
  );
}

/** Copies a directory to a host by SFTP, which keeps no modes: files are not executable there. */
export function hostCopy(
  name: string,
  args: HostCopyArgs,
  options: pulumi.CustomResourceOptions = {},
): remote.CopyToRemote {
  // The slash makes it the contents that are copied, as with rsync.
  const source = new pulumi.asset.FileArchive(`${args.source}/`);
  return new remote.CopyToRemote(name, copyOf(source, args), options);
}

/** Copies one file to a host by SFTP, into a directory that may not be there yet. */
export function hostCopyFile(
  name: string,
  args: HostCopyArgs,
  options: pulumi.CustomResourceOptions = {},
): remote.CopyToRemote {
  const source = new pulumi.asset.FileAsset(args.source);
  return new remote.CopyToRemote(name, copyOf(source, args), options);
}

function copyOf(
  source: pulumi.asset.Asset | pulumi.asset.Archive,
  args: HostCopyArgs,
): remote.CopyToRemoteArgs {
  return {
    connection: connectionTo(args.host),
    source,
    remotePath: args.target,
    // A changed path alone would be an update, and a changed host none at all.
    triggers: [...commonTriggers(args), args.host.managementAddress, args.target],
  };
}

/** The digest of a script, for the `after` of commands that build on what it has done. */
export function scriptDigest(script: HostScript): string {
  return digestOf(renderHostScript(script));
}

function commonTriggers(args: Pick<HostCommandArgs, "instance" | "after">): string[] {
  return [args.instance ?? "metal", ...(args.after ?? [])];
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
