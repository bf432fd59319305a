/** The real Pulumi engine on a backend of its own, for tests that deploy to a lab. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { $ } from "zx";
import type { Testbed } from "../../contracts/testbed.ts";
import { pulumiEnvironment, toolPaths, toolSearchPath } from "../../tools/paths.ts";

const root = path.resolve(import.meta.dirname, "..", "..");
/** A cluster takes longest: its programs and images have some 2 GB. */
const operationSeconds = 300;

export type Done = {
  readonly exitCode: number;
  /** Both streams, colourless. */
  readonly output: string;
  readonly seconds: number;
};

export type Engine = {
  /** Makes an empty stack for a testbed. */
  init(stack: string): Promise<void>;
  /** Runs `pulumi VERB -s STACK ARGS` without questions. */
  run(verb: string, stack: string, args?: readonly string[]): Promise<Done>;
  /** Changes the testbed document of all stacks. */
  setTestbed(testbed: Testbed): void;
  /** Sets topology parameters of a stack, replacing earlier ones. */
  setParameters(stack: string, parameters: Readonly<Record<string, unknown>>): void;
  /** Takes a resource and its dependents out of the state, not off the hosts. */
  forget(stack: string, urn: string): Promise<Done>;
  output(stack: string, name: string): Promise<unknown>;
  /** An output that is secret, in the clear. */
  secret(stack: string, name: string): Promise<unknown>;
  /** Everything in the backend, as text. */
  stateText(): string;
  /** Forgets everything; what is still deployed stays. */
  close(): void;
};

/**
 * An engine whose stacks use this testbed.
 *
 * @throws Error if the programs are not installed
 */
export function openEngine(testbed: Testbed): Engine {
  const { pulumi } = toolPaths(root);
  if (!existsSync(pulumi)) throw new Error(`${pulumi} is missing: make tools`);
  const directory = mkdtempSync(path.join(tmpdir(), "ztbench-engine-"));
  const backend = path.join(directory, "backend");
  mkdirSync(backend);
  const passphraseFile = path.join(directory, "passphrase");
  writeFileSync(passphraseFile, "only for this test", { mode: 0o600 });
  // Stacks are made from here, so that their config is not put into the checkout.
  writeFileSync(path.join(directory, "Pulumi.yaml"), "name: ztbench\nruntime: nodejs\n");
  const testbedFile = path.join(directory, "testbed.json");
  const setTestbed = (document: Testbed) => {
    writeFileSync(testbedFile, JSON.stringify(document));
  };
  setTestbed(testbed);
  const ambient = { ...process.env };
  delete ambient["SSH_AUTH_SOCK"];
  delete ambient["KUBECONFIG"];
  const shell = $({
    cwd: root,
    nothrow: true,
    quiet: true,
    timeout: `${operationSeconds}s`,
    env: {
      ...ambient,
      ...pulumiEnvironment(root, { stateDirectory: backend, passphraseFile }),
      PATH: toolSearchPath(root, process.env["PATH"]),
      NO_COLOR: "1",
    },
  });
  const call = async (args: readonly string[]): Promise<Done & { stdout: string }> => {
    const started = performance.now();
    const done = await shell`${pulumi} ${args} --non-interactive --color never`;
    const seconds = (performance.now() - started) / 1000;
    const output = done.stdout + done.stderr;
    return { exitCode: done.exitCode ?? -1, output, stdout: done.stdout, seconds };
  };
  const output = async (stack: string, name: string, ...more: string[]): Promise<unknown> => {
    const done = await call(["stack", "output", name, "-s", stack, "--json", ...more]);
    if (done.exitCode !== 0) throw new Error(done.output);
    return JSON.parse(done.stdout) as unknown;
  };
  const configFile = (stack: string) => path.join(directory, `Pulumi.${stack}.yaml`);
  const writeConfig = (stack: string, parameters: Readonly<Record<string, unknown>>) => {
    const config = {
      "ztbench:testbed": testbedFile,
      "ztbench:owner": `test/${testbed.name}/${stack}`,
      "ztbench:parameters": parameters,
    };
    // JSON is YAML, too. The engine adds its salt, which must stay.
    const salt = existsSync(configFile(stack))
      ? /^encryptionsalt: .*$/m.exec(readFileSync(configFile(stack), "utf8"))?.[0]
      : undefined;
    writeFileSync(configFile(stack), `config: ${JSON.stringify(config)}\n${salt ?? ""}\n`);
  };
  return {
    async init(stack) {
      writeConfig(stack, {});
      const done = await call(["stack", "init", stack, "--no-select", "--cwd", directory]);
      if (done.exitCode !== 0) throw new Error(done.output);
    },
    run: (verb, stack, args = []) =>
      call([verb, "-s", stack, "--config-file", configFile(stack), ...args]),
    setTestbed,
    setParameters: writeConfig,
    forget: (stack, urn) =>
      call(["state", "delete", urn, "-s", stack, "--target-dependents", "--yes"]),
    output: (stack, name) => output(stack, name),
    secret: (stack, name) => output(stack, name, "--show-secrets"),
    stateText: () =>
      readdirSync(backend, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "utf8"))
        .join("\n"),
    close() {
      rmSync(directory, { recursive: true });
    },
  };
}
