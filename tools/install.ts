/** The installer: `node --import tsx tools/install.ts`. A second run only looks and links. */
import { homedir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { exitCodes, Failure } from "../contracts/failure.ts";
import { cacheRoot } from "./cache.ts";
import { install, type Installer, list, type Options } from "./installation.ts";
import { progressTo } from "./progress.ts";

const usage = `usage: node --import tsx tools/install.ts [options]

Installs every program of the testbed into .ztbench/tools, from a cache outside the checkout
(ZTBENCH_CACHE, by default ~/.cache/ztbench).

  --list            only show what there is and what is missing
  --json            print the manifest (with --list: the listing) as JSON
  --without-lab     leave out the Debian packages of the lab
  --with-tests      also install what only tests need: an API server with Pulumi's provider for
                    it (about 20 min on 2 idle cores, once), Debian packages
  --with-cluster    also install what the lab's Kubernetes needs: its programs (about 20 min,
                    once; most are those of the tests) and images
  --retry-upstream  try again to fetch upstream's command provider
  --help            show this
`;

function readOptions(args: readonly string[]): Options | "help" {
  const flag = { type: "boolean", default: false } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        help: flag,
        list: flag,
        json: flag,
        "without-lab": flag,
        "with-tests": flag,
        "with-cluster": flag,
        "retry-upstream": flag,
      },
    });
    if (values.help) return "help";
    return {
      list: values.list,
      json: values.json,
      withoutLab: values["without-lab"],
      withTests: values["with-tests"],
      withCluster: values["with-cluster"],
      retryUpstream: values["retry-upstream"],
    };
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new Failure("usage", problem, { hint: usage, cause });
  }
}

async function main(args: readonly string[]): Promise<void> {
  const options = readOptions(args);
  if (options === "help") {
    process.stdout.write(usage);
    return;
  }
  const installer: Installer = {
    root: path.resolve(import.meta.dirname, ".."),
    cache: cacheRoot(process.env, homedir()),
    platform: `${process.platform}-${process.arch}`,
    progress: progressTo(
      (line) => process.stderr.write(line),
      () => performance.now(),
    ),
  };
  if (options.list) {
    process.stdout.write((await list(installer, options)) + "\n");
    return;
  }
  const manifest = await install(installer, options);
  installer.progress(`ready: ${manifest.programs.length} programs in .ztbench/tools`);
  if (options.json) process.stdout.write(JSON.stringify(manifest, null, 2) + "\n");
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  if (error.hint !== undefined) process.stderr.write(`hint: ${error.hint}\n`);
  process.exitCode = exitCodes[error.code];
}
