/** Keeps the house rules of docs/design.md §2: who may import what, and how long a file may be. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const root = path.resolve(import.meta.dirname, "..");

/** What each place may import from; itself always. `test` may import anything. */
const floors: Record<string, readonly string[]> = {
  contracts: [],
  tools: ["contracts"],
  hosts: ["contracts"],
  topologies: ["contracts", "hosts"],
  stacks: ["contracts", "hosts", "topologies", "tools"],
  loadgen: ["contracts"],
  analysis: ["contracts"],
  cli: ["contracts", "hosts", "topologies", "loadgen", "analysis", "tools", "stacks"],
  // Benchmarks measure on the synthetic bundles of the tests.
  bench: ["contracts", "hosts", "topologies", "loadgen", "analysis", "tools", "cli", "test"],
};

/** Files that may do more than compute, by what they import. */
const effects: Record<string, RegExp> = {
  "@pulumi/": /^(stacks\/|hosts\/(runner|programs)\.ts$|bench\/deploy\.ts$)/,
  zx: /^(cli|loadgen|tools|hosts\/lab|bench)\//,
  "node:fs":
    /^(cli|loadgen|tools|analysis|hosts\/lab|stacks|bench)\/|^hosts\/(runner|shell|programs)\.ts$/,
  "node:child_process": /^(bench\/|cli\/gob\.ts$|tools\/lock\.ts$|hosts\/lab\/(lock|boot)\.ts$)/,
};

type Source = { readonly file: string; readonly text: string; readonly imports: string[] };

function sources(): Source[] {
  return Object.keys(floors).flatMap((place) =>
    readdirSync(path.join(root, place), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => {
        const file = path.posix.join(place, name);
        const text = readFileSync(path.join(root, file), "utf8");
        const found = text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g);
        return { file, text, imports: [...found].map((match) => match[1] ?? "") };
      }),
  );
}

const all = sources();
const placeOf = (file: string) => file.split("/")[0] ?? "";
const targetOf = (source: Source, specifier: string) =>
  path.posix.normalize(path.posix.join(path.posix.dirname(source.file), specifier));

test("imports go down only", () => {
  const wrong = all.flatMap((source) =>
    source.imports
      .filter((specifier) => specifier.startsWith("."))
      .map((specifier) => targetOf(source, specifier))
      .filter((target) => {
        const [from, to] = [placeOf(source.file), placeOf(target)];
        return from !== to && floors[from]?.includes(to) !== true;
      })
      .map((target) => `${source.file} must not import ${target}: see docs/design.md §2`),
  );
  assert.deepEqual(wrong, []);
});

test("no import cycles", () => {
  const graph = new Map(
    all.map((source) => [
      source.file,
      source.imports.filter((s) => s.startsWith(".")).map((s) => targetOf(source, s)),
    ]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file);
    if (start >= 0) {
      cycles.push([...trail.slice(start), file].join(" → "));
      return;
    }
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  assert.deepEqual(cycles, []);
});

test("only the named files touch Pulumi, processes and the file system", () => {
  const wrong = all.flatMap((source) =>
    Object.entries(effects)
      .filter(([effect]) => source.imports.some((s) => s === effect || s.startsWith(effect)))
      .filter(([, allowed]) => !allowed.test(source.file))
      .map(([effect]) => `${source.file} must not import ${effect}: keep it pure`),
  );
  assert.deepEqual(wrong, []);
});

test("files, lines and names keep their bounds", () => {
  const wrong: string[] = [];
  for (const { file, text } of all) {
    const lines = text.split("\n");
    if (lines.length > 401) wrong.push(`${file} has ${lines.length - 1} lines: split it (400)`);
    lines.forEach((line, index) => {
      if (line.length > 100) wrong.push(`${file}:${index + 1} is longer than 100 columns`);
    });
    if (/\butils?\b/.test(file)) wrong.push(`${file}: name it after what it owns, not "utils"`);
    if (/^export \*/m.test(text)) wrong.push(`${file}: no barrels, import from the file itself`);
    if (!text.startsWith("/**")) wrong.push(`${file}: begin with what the file owns`);
  }
  assert.deepEqual(wrong, []);
});

test("functions are at most 70 lines long", () => {
  const wrong: string[] = [];
  for (const { file, text } of all) {
    const lines = text.split("\n");
    let start: number | undefined;
    lines.forEach((line, index) => {
      if (/^(export )?(default )?(async )?function\*? /.test(line)) start = index;
      if (line === "}" && start !== undefined) {
        if (index - start > 70) wrong.push(`${file}:${start + 1} is ${index - start} lines long`);
        start = undefined;
      }
    });
  }
  assert.deepEqual(wrong, []);
});

test("every topology stack, plan and document names its schema version", () => {
  const documents = ["plans", "budgets", "testbeds"].flatMap((place) =>
    readdirSync(path.join(root, place))
      .filter((name) => name.endsWith(".yaml") && !name.endsWith(".local.yaml"))
      .map((name) => path.posix.join(place, name)),
  );
  assert.ok(documents.length > 0);
  for (const file of documents) {
    assert.match(readFileSync(path.join(root, file), "utf8"), /^schema: ztbench\/[a-z-]+\/\d+$/m);
  }
});
