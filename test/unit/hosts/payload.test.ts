import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type HostPayload, renderPayload, withSweep } from "../../../hosts/payload.ts";
import { renderHostScript } from "../../../hosts/runner.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-payload-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

/** A payload without units, so that it can be put on this machine without being root. */
function payloadAt(name: string, files: Record<string, string> = {}): HostPayload {
  const root = path.join(scratch, name);
  return {
    host: "here",
    root,
    directories: [{ path: `${root}/private`, mode: "0700" }],
    files: Object.entries(files).map(([file, content]) => ({
      path: path.join(root, file),
      mode: "0640",
      content,
    })),
    units: [],
    after: [],
  };
}

function run(payload: HostPayload, verb: "create" | "remove") {
  const input = renderHostScript(renderPayload(payload));
  return spawnSync("bash", ["-s", verb], { input, encoding: "utf8", timeout: 20_000 });
}

function succeed(payload: HostPayload, verb: "create" | "remove"): void {
  const { status, stderr } = run(payload, verb);
  assert.equal(status, 0, stderr);
}

const modeOf = (file: string) => (statSync(file).mode & 0o7777).toString(8);

test("puts files with exactly their content and mode, whatever the content", () => {
  const odd = `it's "$HOME" \`id\` \\n %s\nEOF\n\t'\n`;
  const payload = payloadAt("files", { "a.json": odd, "deep/er/b.json": "", "c d": "no newline" });
  succeed(payload, "create");
  assert.equal(readFileSync(`${payload.root}/a.json`, "utf8"), odd);
  assert.equal(readFileSync(`${payload.root}/deep/er/b.json`, "utf8"), "");
  assert.equal(readFileSync(`${payload.root}/c d`, "utf8"), "no newline");
  assert.equal(modeOf(`${payload.root}/a.json`), "640");
  assert.equal(modeOf(`${payload.root}/private`), "700");
  assert.equal(modeOf(payload.root), "700");
});

test("leaves a payload that is there already as it is", () => {
  const payload = payloadAt("again", { a: "text" });
  succeed(payload, "create");
  const before = statSync(`${payload.root}/a`);
  succeed(payload, "create");
  const now = statSync(`${payload.root}/a`);
  assert.deepEqual([now.ino, now.mtimeMs], [before.ino, before.mtimeMs]);
});

test("replaces what an interrupted or older attempt left", () => {
  succeed(payloadAt("older", { old: "text" }), "create");
  const payload = payloadAt("older", { new: "text" });
  succeed(payload, "create");
  assert.ok(existsSync(`${payload.root}/new`));
  assert.ok(!existsSync(`${payload.root}/old`));
});

test("what is undone last takes off what an interrupted engine left", () => {
  const payload = payloadAt("interrupted", { a: "text" });
  succeed(payload, "create");
  const lease = { create: ":", remove: "echo given back" };
  const input = renderHostScript(withSweep(lease, payload.host, payload.root));
  for (const attempt of ["something is left", "nothing is left"]) {
    const done = spawnSync("bash", ["-s", "remove"], { input, encoding: "utf8" });
    assert.equal(done.stderr, "", attempt);
    assert.equal(done.stdout, "given back\n", attempt);
    assert.ok(!existsSync(payload.root));
  }
});

test("removes everything, and succeeds when nothing is left to remove", () => {
  const payload = payloadAt("removed", { "deep/a": "text" });
  succeed(payload, "create");
  succeed(payload, "remove");
  assert.ok(!existsSync(payload.root));
  succeed(payload, "remove");
});

test("takes off again what it made before it failed", () => {
  const payload = payloadAt("broken", { a: "text" });
  const nowhere = { path: "/proc/ztbench/file", mode: "0600", content: "" };
  const { status, stderr } = run({ ...payload, files: [...payload.files, nowhere] }, "create");
  assert.notEqual(status, 0);
  assert.match(stderr, /\/proc\/ztbench/);
  assert.ok(!existsSync(payload.root));
});

test("changes nothing if a port is in use, and says who listens there", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const unit = { name: "ztbench-test.service", text: "[Service]\n", listens: [port] };
    const payload = { ...payloadAt("busy", { a: "text" }), units: [unit] };
    const { status, stderr } = run(payload, "create");
    assert.equal(status, 1);
    const pid = `\\(pid ${process.pid}\\)`;
    assert.match(stderr, new RegExp(`^here: port ${port}: already in use by \\S+ ${pid}`));
    assert.match(stderr, new RegExp(`next: stop it: ss -ltnp 'sport = :${port}'`));
    assert.ok(!existsSync(payload.root));
    assert.ok(!existsSync("/run/systemd/system/ztbench-test.service"));
  } finally {
    server.close();
  }
});

test("says what is left if something cannot be removed", () => {
  const payload = payloadAt("stuck");
  mkdirSync(payload.root, { recursive: true });
  const script = renderPayload(payload);
  const blind = { ...script, prelude: `${script.prelude ?? ""}\nrm() { :; }` };
  const input = renderHostScript(blind);
  const { status, stderr } = spawnSync("bash", ["-s", "remove"], { input, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`here: removal: left behind: ${payload.root} \\[testbed\\]`));
});

test("starts units in their order once the service manager knows them", () => {
  const units = ["first", "second"].map((name, index) => ({
    name: `${name}.service`,
    text: "[Service]\n",
    listens: [8000 + index],
  }));
  const { create } = renderPayload({ ...payloadAt("units"), units });
  const steps = create.split("\n").filter((line) => /^(start |load_units)/.test(line));
  assert.deepEqual(steps, ["load_units", "start first.service 8000", "start second.service 8001"]);
});

/** A payload whose one step makes a file outside of its root. */
function payloadWithStep(name: string, outside: string): HostPayload {
  const quoted = `'${outside}'`;
  return {
    ...payloadAt(name, { a: "text" }),
    steps: [
      {
        make: `echo "$given" >${quoted}; echo "made for $given" >"$root/printed"`,
        undo: `rm -f ${quoted}`,
        left: `[ ! -e ${quoted} ] || echo "the file outside"`,
      },
    ],
    receives: { given: "other-payload" },
  };
}

function runWith(payload: HostPayload, verb: "create" | "remove", given: string, more = "") {
  const script = renderPayload(payload);
  const prelude = `${script.prelude ?? ""}\n${more}`;
  const input = renderHostScript({ ...script, prelude }, { given });
  return spawnSync("bash", ["-s", verb], { input, encoding: "utf8", timeout: 20_000 });
}

test("a step is made with what other payloads printed, prints, and is undone", () => {
  const outside = path.join(scratch, "outside");
  const payload = payloadWithStep("steps", outside);
  const created = runWith(payload, "create", "it's for you");
  assert.equal(created.stdout, "made for it's for you\n", created.stderr);
  assert.equal(readFileSync(outside, "utf8"), "it's for you\n");
  const again = runWith(payload, "create", "it's for you");
  assert.equal(again.stdout, created.stdout);
  const removed = runWith(payload, "remove", "it's for you");
  assert.equal(removed.status, 0, removed.stderr);
  assert.ok(!existsSync(outside));
});

test("a payload that was given something else is put on anew", () => {
  const outside = path.join(scratch, "anew");
  const payload = payloadWithStep("given", outside);
  runWith(payload, "create", "first");
  assert.equal(runWith(payload, "create", "second").stdout, "made for second\n");
  assert.equal(readFileSync(outside, "utf8"), "second\n");
});

test("a step that breaks off is undone, and nothing else is left", () => {
  const outside = path.join(scratch, "broken-step");
  const payload = payloadWithStep("breaks", outside);
  const [step] = payload.steps ?? [];
  assert.ok(step);
  const broken = { ...payload, steps: [{ ...step, make: `${step.make}; false` }] };
  const { status } = runWith(broken, "create", "x");
  assert.notEqual(status, 0);
  assert.ok(!existsSync(outside));
  assert.ok(!existsSync(payload.root));
});

test("removal fails by name if a step is not undone", () => {
  const outside = path.join(scratch, "stays");
  const payload = payloadWithStep("stays-on", outside);
  runWith(payload, "create", "x");
  const { status, stderr } = runWith(payload, "remove", "x", "undo_steps() { :; }");
  assert.equal(status, 1);
  assert.match(stderr, /here: removal: left behind: the file outside \[testbed\]/);
});

test("a sweep undoes the steps of a payload that it does not know", () => {
  const outside = path.join(scratch, "swept");
  const payload = payloadWithStep("unknown", outside);
  runWith(payload, "create", "x");
  const input = renderHostScript(
    withSweep({ create: ":" }, payload.host, path.join(scratch, "none"), payload.root),
  );
  const done = spawnSync("bash", ["-s", "remove"], { input, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  assert.ok(!existsSync(outside));
  assert.ok(!existsSync(payload.root));
});
