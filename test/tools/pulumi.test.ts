/** Runs the installed Pulumi tool chain against a program of its own. Needs `make tools`. */
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { $ } from "zx";
import { readToolsManifest } from "../../tools/manifest.ts";
import { pulumiEnvironment, toolSearchPath } from "../../tools/paths.ts";
import { versions } from "../../tools/versions.ts";
import { type SshServer, startSshServer } from "./sshd.ts";

const root = path.resolve(import.meta.dirname, "../..");
const token = "correct-horse-battery-staple";

/** Polls until `look` finds something, which it returns. */
async function eventually<T>(what: string, look: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    const found = await look();
    if (found) return found;
    await pause(20);
  }
  return assert.fail(`not within 30 s: ${what}`);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

suite("installed Pulumi tool chain", { timeout: 240_000 }, () => {
  let scratch = "";
  let sshd: SshServer;

  const pulumi = (...words: string[]) =>
    $({
      cwd: path.join(scratch, "program"),
      quiet: true,
      nothrow: true,
      timeout: "90s",
      env: {
        ...process.env,
        PATH: toolSearchPath(root, process.env["PATH"]),
        ...pulumiEnvironment(root, {
          stateDirectory: path.join(scratch, "state"),
          passphraseFile: path.join(scratch, "passphrase"),
        }),
      },
    })`pulumi ${[...words, "--non-interactive"]}`;

  const succeed = async (...words: string[]) => {
    const run = await pulumi(...words);
    assert.equal(run.exitCode, 0, `pulumi ${words.join(" ")}:\n${run.stdout}${run.stderr}`);
    return run.stdout + run.stderr;
  };
  const up = () => succeed("up", "--yes", "--skip-preview", "--stack", "proof");
  const set = (key: string, value: string) =>
    succeed("config", "set", "--stack", "proof", key, value);
  const history = async (name: string) =>
    (await readFile(path.join(scratch, name), "utf8")).trim().split("\n");

  before(async () => {
    scratch = await mkdtemp(path.join(tmpdir(), "toolproof-"));
    const program = path.join(scratch, "program");
    await cp(path.join(import.meta.dirname, "program"), program, { recursive: true });
    await symlink(path.join(root, "node_modules"), path.join(program, "node_modules"));
    await mkdir(path.join(scratch, "state"));
    await writeFile(path.join(scratch, "passphrase"), "for this test only", { mode: 0o600 });
    sshd = await startSshServer(scratch);
    await succeed("stack", "init", "proof");
    await set("directory", scratch);
    await set("generation", "1");
    await set("port", String(sshd.port));
    await set("user", sshd.user);
    await set("keyFile", sshd.keyFile);
    await set("hostKey", sshd.hostKey);
    await succeed("config", "set", "--stack", "proof", "--secret", "token", token);
  });

  after(async () => {
    await sshd.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  test("is the version of the table, and says so in the manifest", async () => {
    assert.equal((await succeed("version")).trim(), `v${versions.pulumi.version}`);
    const { programs } = await readToolsManifest(root);
    const plugin = programs.find((p) => p.name === "pulumi-resource-command");
    assert.match(plugin?.author ?? "missing", /^(upstream|stand-in)$/);
  });

  test("creates both commands and passes options of Pulumi.yaml to node", async () => {
    const output = await up();
    assert.doesNotMatch(output, /warning/, "a warning in front of the user");
    const outputs: unknown = JSON.parse(await succeed("stack", "output", "--json", "-s", "proof"));
    assert.deepEqual(outputs, { said: "made 1", secretly: "[secret]", title: "toolproof" });
    assert.deepEqual(await history("there"), ["made 1"]);
  });

  test("changes nothing on a second run", async () => {
    await succeed("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "proof");
    assert.deepEqual(await history("here"), ["made 1"]);
  });

  test("keeps secrets out of the state on disk", async () => {
    const state = path.join(scratch, "state");
    const entries = await readdir(state, { recursive: true, withFileTypes: true });
    const files = entries.filter((e) => e.isFile()).map((e) => path.join(e.parentPath, e.name));
    assert.ok(files.some((file) => file.endsWith("proof.json")));
    for (const file of files) {
      const text = await readFile(file, "utf8");
      assert.ok(!text.includes(token), `${file} holds the token`);
      assert.ok(!text.includes("PRIVATE KEY"), `${file} holds the private key`);
    }
  });

  test("updates in place, and replaces where a trigger changed", async () => {
    await set("generation", "2");
    await up();
    assert.deepEqual(await history("here"), ["made 1", "changed 2"]);
    assert.deepEqual(await history("there"), ["made 1", "gone", "made 2"]);
  });

  test("reports an error of the program once and promptly", async () => {
    await set("broken", "true");
    const run = await pulumi("preview", "--stack", "proof");
    await succeed("config", "rm", "broken", "--stack", "proof");
    const said = run.stdout + run.stderr;
    assert.equal(run.exitCode, 1);
    assert.match(said, /broken on purpose/);
    assert.doesNotMatch(said, /program failed/, "the language host must not report it again");
  });

  test("ends a remote command on its host when it is interrupted", async () => {
    await set("endless", "true");
    const pidFile = path.join(scratch, "endless");
    const running = pulumi("up", "--yes", "--skip-preview", "--stack", "proof");
    const pid = await eventually("the command starts", async () =>
      Number(await readFile(pidFile, "utf8").catch(() => "")),
    );
    process.kill(running.pid ?? assert.fail("no process"), "SIGINT");
    const run = await running;
    assert.notEqual(run.exitCode, 0);
    await eventually("the command is gone", () => Promise.resolve(!isAlive(pid)));
    await succeed("config", "rm", "endless", "--stack", "proof");
    await up(); // neither a lock nor a pending operation is left
  });

  test("destroys both commands", async () => {
    await succeed("destroy", "--yes", "--skip-preview", "--stack", "proof");
    assert.deepEqual((await history("here")).at(-1), "gone");
    assert.deepEqual((await history("there")).at(-1), "gone");
    const left: unknown = JSON.parse(await succeed("stack", "export", "--stack", "proof"));
    assert.equal(JSON.stringify(left).includes("command:"), false, "resources are left");
  });
});
