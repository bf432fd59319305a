/** The script for CI, with ztbench, pulumi and make replaced: what it calls, and how it ends. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";

const script = path.resolve(import.meta.dirname, "../../../ci/regress.sh");
const deadlineMs = 60_000;

/** Logs its call, then does what the file of its first words says: `ends/WORD-WORD`. */
const stub = `#!/bin/bash
here=$(dirname "$(readlink -f "$0")")/..
name=$(basename "$0")
echo "$name $*" >>"$here/calls"
for key in "$name-$1-$2" "$name-$1"; do
  key=\${key//\\//_}
  if [ -f "$here/ends/$key" ]; then . "$here/ends/$key"; exit; fi
done
`;

/** A lab that is up and a stack that holds something, until they are taken down. */
const usual: Readonly<Record<string, string>> = {
  "ztbench-env": "echo true",
  "ztbench-lab-up": 'mkdir -p "$here/.ztbench/testbeds/lab"; touch "$here/up" "$_"/testbed.yaml',
  "ztbench-lab-down": 'rm -f "$here/up"',
  "ztbench-lab-status": 'if [ -e "$here/up" ]; then echo lab: up; else echo lab: down; fi',
  "ztbench-campaign": 'case $* in *--bundle*) mkdir -p "$6/tables";; esac',
  "pulumi-up": 'touch "$here/held"',
  "pulumi-destroy": '[ "$3" != hosts ] || rm -f "$here/held"',
  "pulumi-stack": `n=null; [ ! -e "$here/held" ] || n=9
    echo '[{"name":"cluster"},{"name":"hosts","resourceCount":'$n'},
      {"name":"jwt","resourceCount":'$n'}]'`,
};

type Tree = { readonly root: string; calls(): string[] };

function makeTree(context: TestContext, changed: Readonly<Record<string, string>> = {}): Tree {
  const root = mkdtempSync(path.join(tmpdir(), "ztbench-regress-"));
  context.after(() => {
    rmSync(root, { recursive: true });
  });
  for (const directory of ["ci", "bin", "ends", "node_modules/tsx"]) {
    mkdirSync(path.join(root, directory), { recursive: true });
  }
  copyFileSync(script, path.join(root, "ci", "regress.sh"));
  for (const name of ["bin/make", "bin/pulumi", "bin/ztbench"]) {
    writeFileSync(path.join(root, name), stub);
    chmodSync(path.join(root, name), 0o755);
  }
  // The installer alone is replaced; the script has Node.js read JSON, too.
  const node = `[ "$1" = --import ] || exec '${process.execPath}' "$@"`;
  writeFileSync(path.join(root, "bin", "node"), stub.replace("\n", `\n${node}\n`), { mode: 0o755 });
  writeFileSync(path.join(root, "ztbench"), '#!/bin/bash\nexec "${0%/*}/bin/ztbench" "$@"\n');
  chmodSync(path.join(root, "ztbench"), 0o755);
  for (const [name, text] of Object.entries({ ...usual, ...changed })) {
    writeFileSync(path.join(root, "ends", name), `${text}\n`);
  }
  const log = path.join(root, "calls");
  return {
    root,
    calls: () => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []),
  };
}

type Ended = { readonly code: number | null; readonly said: string };

function start(tree: Tree, args: readonly string[]) {
  const child = spawn(path.join(tree.root, "ci", "regress.sh"), args, {
    cwd: tree.root,
    env: { ...process.env, PATH: `${tree.root}/bin:${process.env["PATH"] ?? ""}` },
    timeout: deadlineMs,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data: Buffer) => (said += data.toString()));
  }
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code) => {
      resolve({ code, said });
    });
  });
  return { child, ended };
}

const run = (tree: Tree, ...args: string[]) => start(tree, args).ended;

async function called(tree: Tree, pattern: RegExp): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  while (!tree.calls().some((call) => pattern.test(call))) {
    assert.ok(Date.now() < deadline, `${String(pattern)} was not called`);
    await delay(20);
  }
}

/** Whatever came before, it ends with everything down and proved to be so. */
function assertDown(tree: Tree, { said }: Ended): void {
  assert.match(said, /absent: nothing of lab lab is on this machine/);
  assert.ok(!existsSync(path.join(tree.root, "up")), said);
  assert.ok(!existsSync(path.join(tree.root, "held")), said);
}

test("a check raises, measures, judges and takes down, in this order", async (context) => {
  const tree = makeTree(context);
  const ended = await run(tree, "measure", "--out", "o", "--plan", "p", "--budget", "b");
  assert.equal(ended.code, 0, ended.said);
  assertDown(tree, ended);
  const at = (word: string) => path.join(tree.root, word);
  assert.deepEqual(
    tree.calls().filter((call) => !/ (env|stack)/.test(call)),
    [
      "make tools",
      `ztbench campaign ${at("p")} --budget ${at("b")} --estimate`,
      "ztbench lab up --name lab --network 0",
      "pulumi up -s hosts --yes --skip-preview --suppress-outputs --non-interactive --color never",
      `ztbench campaign ${at("p")} --budget ${at("b")} --bundle ${at("o")}`,
      `ztbench verify ${at("o")}`,
      `ztbench budget ${at("o")} ${at("b")} --junit ${at("o.xml")}`,
      "ztbench init .ztbench/testbeds/lab/testbed.yaml",
      `ztbench release ${at("o")}`,
      "pulumi destroy -s jwt --yes --skip-preview --non-interactive --color never",
      "pulumi destroy -s hosts --yes --skip-preview --non-interactive --color never",
      "ztbench lab down --name lab --network 0 --force",
      "ztbench lab status --name lab --network 0",
    ],
  );
});

const nothing = /^$/;
const ends: [what: string, changed: Record<string, string>, code: number, skipped: RegExp][] = [
  ["programs that cannot be built", { "make-tools": "exit 2" }, 4, /lab up|campaign/],
  ["a bad plan", { "ztbench-campaign": "exit 3" }, 3, /lab up|verify/],
  ["a lab that cannot be raised", { "ztbench-lab-up": "exit 4" }, 4, /pulumi up|--bundle/],
  ["hosts that cannot be prepared", { "pulumi-up": 'touch "$here/held"; exit 255' }, 4, /--bundle/],
  [
    "too many invalid runs",
    { "ztbench-campaign": 'case $* in *--bundle*) mkdir -p "$6/tables"; exit 5;; esac' },
    5,
    nothing,
  ],
  [
    "a load run that broke off",
    { "ztbench-campaign": "case $* in *--bundle*) exit 5;; esac" },
    5,
    /verify|junit/,
  ],
  ["a broken budget", { "ztbench-budget": "exit 6" }, 6, nothing],
  ["a budget that was not judged", { "ztbench-budget": "exit 7" }, 7, nothing],
  [
    "a bundle that does not verify, and a broken budget after it",
    { "ztbench-verify": "exit 3", "ztbench-budget": "exit 6" },
    3,
    nothing,
  ],
  ["a bug", { "ztbench-verify": "exit 1" }, 1, nothing],
];
for (const [what, changed, code, skipped] of ends) {
  test(`${what}: exit code ${code}, and nothing is left`, async (context) => {
    const tree = makeTree(context, changed);
    const ended = await run(tree, "measure", "--out", "o");
    assert.equal(ended.code, code, ended.said);
    assertDown(tree, ended);
    assert.ok(!tree.calls().some((call) => skipped.test(call)), tree.calls().join("\n"));
  });
}

test("a lab whose hosts' stack cannot be destroyed is removed, and the check fails", async (context) => {
  const changed = {
    "pulumi-destroy": "exit 255",
    "ztbench-lab-down": 'rm -f "$here/up" "$here/held"',
  };
  const tree = makeTree(context, changed);
  const ended = await run(tree, "measure", "--out", "o");
  assert.equal(ended.code, 4, ended.said);
  assert.match(ended.said, /stacks not cleared/);
  assertDown(tree, ended);
});

test("what is left after tear-down fails a check that passed, and is named", async (context) => {
  const changed = { "ztbench-lab-status": "echo lab: broken; echo '  left: link lab-client'" };
  const ended = await run(makeTree(context, changed), "measure", "--out", "o");
  assert.equal(ended.code, 4, ended.said);
  assert.match(ended.said, /something is left\nlab: broken\n {2}left: link lab-client/);
});

test("tear-down that fails does not hide why the check failed", async (context) => {
  const changed = { "ztbench-budget": "exit 6", "ztbench-lab-down": "exit 4" };
  const ended = await run(makeTree(context, changed), "measure", "--out", "o");
  assert.equal(ended.code, 6, ended.said);
  assert.match(ended.said, /lab not taken down/);
});

const slowCampaign = {
  "ztbench-campaign": `case $* in *--bundle*) ;; *) exit 0;; esac
    trap 'echo signal >>"$here/signals"; sleep 0.3; exit 130' TERM INT
    echo measuring >>"$here/calls"
    for i in {1..600}; do sleep 0.1; done`,
};

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} reaches the campaign once, waits for its end and takes all down`, async (context) => {
    const tree = makeTree(context, slowCampaign);
    const { child, ended } = start(tree, ["measure", "--out", "o"]);
    await called(tree, /measuring/);
    child.kill(signal);
    await called(tree, /lab down|destroy/);
    child.kill(signal); // as CI systems do, when they grow impatient
    const done = await ended;
    assert.equal(done.code, 130, done.said);
    assert.equal(readFileSync(path.join(tree.root, "signals"), "utf8"), "signal\n");
    assertDown(tree, done);
    assert.ok(!tree.calls().some((call) => /verify|junit/.test(call)));
  });
}

test("a campaign that takes too long is ended: exit code 5, and nothing is left", async (context) => {
  const tree = makeTree(context, slowCampaign);
  // The bound is in minutes; the test has none to spare.
  const file = path.join(tree.root, "ci", "regress.sh");
  const text = readFileSync(file, "utf8");
  assert.ok(text.includes("$((minutes * 60))"));
  writeFileSync(file, text.replace("$((minutes * 60))", "1"));
  const ended = await run(tree, "measure", "--out", "o");
  assert.equal(ended.code, 5, ended.said);
  assert.match(ended.said, /not done within 1 s: \.\/ztbench campaign/);
  assertDown(tree, ended);
});

test("down waits for what a killed check started, then unlocks and destroys", async (context) => {
  const destroy = '[ ! -e "$here/.ztbench/current/backend/.pulumi/locks/x/y/$3/lock" ] || exit 255';
  const tree = makeTree(context, {
    ...slowCampaign,
    "ztbench-campaign": `${slowCampaign["ztbench-campaign"]}\necho late >>"$here/calls"`
      .replace("{1..600}", "{1..20}")
      .replace(/^ *trap .*$/m, ""),
    "pulumi-destroy": `${destroy}\n${usual["pulumi-destroy"] ?? ""}`,
    "pulumi-cancel": 'rm "$here/.ztbench/current/backend/.pulumi/locks/x/y/$3/lock"',
  });
  const locks = path.join(tree.root, ".ztbench/current/backend/.pulumi/locks/x/y/jwt");
  mkdirSync(locks, { recursive: true });
  writeFileSync(path.join(locks, "lock"), "");
  const { child, ended } = start(tree, ["measure", "--out", "o"]);
  await called(tree, /--bundle/);
  child.kill("SIGKILL");
  const down = await run(tree, "down");
  await ended;
  assert.equal(down.code, 0, down.said);
  assertDown(tree, down);
  const calls = tree.calls();
  assert.ok(calls.indexOf("late") < calls.findIndex((call) => call.includes("lab down")));
  const cancelled = calls.filter((call) => call.startsWith("pulumi cancel"));
  assert.deepEqual(cancelled, ["pulumi cancel -s jwt --yes --non-interactive --color never"]);
});

test("down where nothing is up succeeds, again and again", async (context) => {
  const tree = makeTree(context);
  for (let time = 0; time < 2; time += 1) {
    const ended = await run(tree, "down");
    assert.equal(ended.code, 0, ended.said);
    assertDown(tree, ended);
  }
});

test("hosts of one's own are initialised and cleared, and no lab is touched", async (context) => {
  const tree = makeTree(context);
  writeFileSync(path.join(tree.root, "rack.yaml"), "");
  const ended = await run(tree, "measure", "--testbed", "rack.yaml", "--out", "o", "--cluster");
  assert.equal(ended.code, 0, ended.said);
  assert.match(ended.said, /cleared: no stack of this testbed holds anything/);
  const calls = tree.calls();
  assert.ok(!calls.some((call) => call.includes(" lab ")), calls.join("\n"));
  const of = (word: string) =>
    calls.filter((call) => call.includes(word)).map((c) => c.slice(0, 40));
  assert.equal(of(`init ${tree.root}/rack.yaml`).length, 2);
  assert.match(of("pulumi up").join(), /-s hosts.*-s cluster/);
  assert.match(
    calls.find((c) => c.includes("--estimate")) ?? "",
    /plans\/regress\.yaml --budget bud/,
  );
});

test("hosts that cannot be cleared fail a check that passed", async (context) => {
  const tree = makeTree(context, { "pulumi-destroy": "exit 255" });
  writeFileSync(path.join(tree.root, "rack.yaml"), "");
  const ended = await run(tree, "measure", "--testbed", "rack.yaml", "--out", "o");
  assert.equal(ended.code, 4, ended.said);
});

test("two checks do not run in one checkout", async (context) => {
  const tree = makeTree(context, slowCampaign);
  const first = start(tree, ["measure", "--out", "o"]);
  await called(tree, /--bundle/);
  const second = await run(tree, "measure", "--out", "o2");
  first.child.kill("SIGTERM");
  await first.ended;
  assert.equal(second.code, 4, second.said);
  assert.match(second.said, /another check runs in this checkout/);
});

const refused: [args: string[], expected: RegExp][] = [
  [[], /action: unknown, "", measure or down/],
  [["measure", "--fast"], /argument: unknown, "--fast"/],
  [["measure", "--plan"], /--plan: has no value/],
  [["measure", "--minutes", "1h"], /--minutes: not usable, "1h"/],
  [["down", "--name", "../x"], /--name: not usable, "\.\.\/x"/],
  [["measure", "--resume"], /--resume: needs --out/],
];
for (const [args, expected] of refused) {
  test(`regress.sh ${args.join(" ")}: exit code 2, and nothing is called`, async (context) => {
    const tree = makeTree(context);
    const ended = await run(tree, ...args);
    assert.equal(ended.code, 2);
    assert.match(ended.said, expected);
    assert.deepEqual(tree.calls(), []);
  });
}
