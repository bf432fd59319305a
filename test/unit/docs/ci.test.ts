/** The workflow that users copy, and its page, against the script, the verbs and the Makefile. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { exitCodes } from "../../../contracts/failure.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");

const script = read("ci/regress.sh");
const text = read("docs/how-to/ci/workflow.yaml");
const page = read("docs/how-to/ci.md");

const stepSchema = z.strictObject({
  name: z.string().optional(),
  if: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.union([z.string(), z.boolean(), z.number()])).optional(),
});
const jobSchema = z.strictObject({
  if: z.string(),
  "runs-on": z.array(z.string()),
  "timeout-minutes": z.number(),
  concurrency: z.strictObject({ group: z.string(), "cancel-in-progress": z.literal(false) }),
  env: z.record(z.string(), z.string()),
  steps: z.array(stepSchema),
});
const workflow = z
  .strictObject({
    name: z.string(),
    on: z.record(z.string(), z.unknown()),
    permissions: z.strictObject({ contents: z.literal("read") }),
    jobs: z.record(z.string(), jobSchema),
  })
  .parse(parse(text));
const jobs = Object.entries(workflow.jobs);

/** Options that the script's usage lists. */
const options = [...script.matchAll(/^ {2}(--[a-z]+)/gm)].map(([, option]) => option ?? "");

test("there are two jobs: a lab and a rack", () => {
  assert.deepEqual(
    jobs.map(([name]) => name),
    ["lab", "rack"],
  );
  assert.ok(options.length >= 9, options.join());
});

for (const [name, job] of jobs) {
  const runs = job.steps.filter(({ run }) => run !== undefined);

  test(`job ${name} measures and tears down by the script, and does nothing else itself`, () => {
    const commands = runs.map(({ run = "" }) => run.split(" "));
    assert.deepEqual(
      commands.map((words) => words.slice(0, 3).join(" ")),
      ["exec ci/regress.sh measure", "exec ci/regress.sh down"],
    );
    const given = commands.map((words) => words.filter((word) => word.startsWith("--")));
    assert.deepEqual(
      given.flat().filter((option) => !options.includes(option)),
      [],
    );
    // What was raised is what is taken down.
    const hosts = (words: string[]) =>
      words.flatMap((word, i) =>
        /^--(testbed|name|network|out)$/.test(word) ? [word, words[i + 1]] : [],
      );
    assert.deepEqual(hosts(commands[0] ?? []), hosts(commands[1] ?? []));
  });

  test(`job ${name} tears down and keeps results whatever happened`, () => {
    const measure = job.steps.findIndex(({ name: title }) => title === "measure");
    const later = job.steps.slice(measure + 1);
    assert.equal(job.steps[measure]?.if, undefined);
    assert.deepEqual(
      later.map((step) => [step.if, step.run?.split(" ")[2] ?? step.uses]),
      [
        ["always()", "down"],
        ["always()", "actions/upload-artifact@v4"],
      ],
    );
    const kept = String(later[1]?.with?.["path"])
      .trim()
      .split(/\s*\n\s*/);
    assert.deepEqual(kept, ["${{ env.OUT }}.xml", "${{ env.OUT }}"]);
    assert.match(runs[0]?.run ?? "", / --out "\$OUT"$/);
    assert.ok(script.includes('--bundle "$out"') && script.includes('--junit "$out.xml"'));
  });

  test(`job ${name} keeps the state of the checkout, and caches by what is built`, () => {
    const [checkout, cache] = job.steps;
    assert.equal(checkout?.uses, "actions/checkout@v4");
    assert.deepEqual(checkout.with, { clean: false });
    assert.equal(cache?.uses, "actions/cache@v4");
    assert.equal(cache.with?.["path"], "~/.cache/ztbench");
    const key = String(cache.with["key"]);
    const [, hashed = ""] = /hashFiles\(([^)]*)\)/.exec(key) ?? [];
    const patterns = [...hashed.matchAll(/'([^']+)'/g)].map(([, pattern]) => pattern ?? "");
    assert.ok(patterns.includes("**/go.sum") && patterns.includes("tools/versions.ts"), key);
    for (const pattern of patterns.filter((p) => !p.startsWith("**"))) read(pattern);
  });

  test(`job ${name} has time for the script's bounds and for builds`, () => {
    const [, rack = "", lab = ""] = /&& echo (\d+) \|\| echo (\d+)\)/.exec(script) ?? [];
    const measuring = Number(name === "rack" ? rack : lab);
    assert.ok(measuring > 0 && job["timeout-minutes"] >= measuring + 120);
  });
}

test("code of a fork never runs on a machine of one's own", () => {
  assert.match(workflow.jobs["lab"]?.if ?? "", /head\.repo\.full_name == github\.repository$/);
  assert.equal(workflow.jobs["rack"]?.if, "github.event_name != 'pull_request'");
});

test("the workflow names no host of anybody and no secret", () => {
  assert.doesNotMatch(text, /https?:|secrets\.|registry|\b\d+\.\d+\.\d+\.\d+\b/);
});

test("everything that the script calls is a verb, a target or a word of pulumi", () => {
  const verbs = [...read("cli/main.ts").matchAll(/^ {2}(\w+): async \(\) =>/gm)].map(([, v]) => v);
  const targets = [...read("Makefile").matchAll(/^([a-z-]+):/gm)].map(([, target]) => target);
  const code = script.replaceAll(/^ *#.*$/gm, "");
  const called = (pattern: RegExp) => [...code.matchAll(pattern)].map(([, word]) => word);
  const ztbench = called(/\.\/ztbench ([a-z]+)/g);
  assert.ok(ztbench.length >= 8);
  assert.deepEqual(
    ztbench.filter((verb) => !verbs.includes(verb)),
    [],
  );
  assert.deepEqual(
    called(/ make ([a-z-]+)/g).filter((target) => !targets.includes(target)),
    [],
  );
  const pulumi = called(/ pulumi ([a-z]+)/g);
  assert.deepEqual([...new Set(pulumi)].sort(), ["cancel", "destroy", "stack", "up"]);
  for (const [, file = ""] of code.matchAll(/(tools\/[a-z-]+\.ts)/g)) read(file);
  for (const flavour of ["regress", "regress-lab"]) {
    read(`plans/${flavour}.yaml`);
    read(`budgets/${flavour}.yaml`);
  }
});

test("script and page name the exit codes of ztbench, and the page every option", () => {
  for (const code of Object.values(exitCodes).filter((c) => c !== exitCodes.bug)) {
    assert.match(script.slice(0, script.indexOf("say()")), new RegExp(`\\b${code} [a-z]`));
    assert.match(page, new RegExp(`^\\| +${code} `, "m"));
  }
  for (const option of options) assert.ok(page.includes(option), option);
});

test("links of the page lead somewhere", () => {
  const links = [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link]) => link ?? "");
  assert.ok(links.includes("ci/workflow.yaml"));
  for (const link of links) read(path.join("docs/how-to", link));
});
