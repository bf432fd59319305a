import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { campaignGates } from "../../../analysis/gates/campaign-gates.ts";
import { gateNumbers } from "../../../analysis/gates/gate.ts";
import { deriveResults } from "../../../cli/results.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const text = readFileSync(path.join(root, "docs/reviewers.md"), "utf8");
const quoted = [...text.matchAll(/`([^`]+)`/g)].map(([, inner = ""]) => inner.replace(/\s+/g, " "));

test("all thirty questions are there, each with its state", () => {
  const numbers = [...text.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
  assert.deepEqual(
    numbers,
    Array.from({ length: 30 }, (_, index) => index + 1),
  );
  const answers = text.split(/^\d+\. \*\*/m).slice(1);
  for (const answer of answers) {
    assert.match(answer, /\?\*\*\s+(Answered|Partly|Not answered yet)/, answer.slice(0, 60));
  }
});

test("what is not answered says why", () => {
  for (const [, why = ""] of text.matchAll(/Not answered yet:\s+([^.]+)\./g)) {
    assert.ok(why.length > 10, why);
  }
});

test("every file of the repository that is named exists", () => {
  const files = quoted.filter((name) => /^[a-z-]+\/[^ ]+\.[a-z]+$/.test(name));
  assert.ok(files.length > 30, String(files.length));
  assert.deepEqual(
    files.filter((file) => !existsSync(path.join(root, file))),
    [],
  );
});

test("every command that is named is one of ztbench", () => {
  const verbs = readFileSync(path.join(root, "cli/main.ts"), "utf8");
  const commands = quoted.filter((name) => name.startsWith("./ztbench "));
  assert.ok(commands.length > 5);
  for (const command of commands) {
    const verb = command.split(" ")[1] ?? "";
    assert.match(verbs, new RegExp(`^ {2}${verb}: async`, "m"), command);
  }
});

test("every gate that is named exists", () => {
  const sentences = [
    ...text.matchAll(/\b[Gg]ates?\s+((?:`[a-z-]+`(?:\s\([^)]*\))?(?:,\s+|\s+and\s+)?)+)/g),
  ];
  const gates = sentences.flatMap(([, list = ""]) =>
    [...list.matchAll(/`([a-z-]+)`/g)].map(([, gate = ""]) => gate),
  );
  assert.ok(gates.length > 20, String(gates.length));
  assert.deepEqual(
    gates.filter(
      (gate) => !Object.hasOwn(gateNumbers, gate) && !Object.hasOwn(campaignGates, gate),
    ),
    [],
  );
});

let bundle: string;
before(async () => {
  bundle = await makeBundle({
    blocks: 1,
    durationSeconds: 1,
    content: (_, plan) => ({ rows: steadyRows(plan, () => 200_000), cpuPerRequestUs: 100 }),
  });
  await deriveResults(bundle, false);
});
after(() => removeBundle(bundle));

test("every file of a bundle that is named is one that a bundle has", () => {
  const run = readdirSync(path.join(bundle, "runs"))[0] ?? "";
  const files = quoted
    .filter((name) => name.startsWith("BUNDLE/") && !name.endsWith("/"))
    .map((name) => name.replace("BUNDLE/", "").replace("RUN", run));
  assert.ok(files.length > 10);
  assert.deepEqual(
    files.filter((file) => !existsSync(path.join(bundle, file))),
    [],
  );
});
