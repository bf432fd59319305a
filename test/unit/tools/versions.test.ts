import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { debianPackages } from "../../../tools/debian-packages.ts";
import { versions, versionTable } from "../../../tools/versions.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");

const goModules = [
  "service",
  "tools/go/benchstat",
  "tools/go/istio",
  "tools/go/kube-router",
  "tools/go/kubernetes",
  "tools/go/kwok",
  "tools/go/pause",
  "tools/go/pulumi",
  "tools/go/pulumi-kubernetes",
  "tools/go/vegeta",
];

const built = versionTable.flatMap(({ version, origin }) =>
  origin.how === "go module" ? [{ ...origin, version: origin.moduleVersion ?? version }] : [],
);

/** `module version` of what a go.mod requires, without the v. */
const requirements = (directory: string, isWanted: (line: string) => boolean) =>
  [...read(`${directory}/go.mod`).matchAll(/^(?:\t|require )(\S+ v\S+)(.*)$/gm)]
    .filter(([line]) => isWanted(line))
    .map(([, requirement = ""]) => requirement.replace(" v", " "));

test("package.json pins exactly the npm versions of the table", () => {
  const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
  const pinned = { ...manifest["dependencies"], ...manifest["devDependencies"] };
  const npm = versionTable.filter((entry) => entry.origin.how === "npm");
  assert.deepEqual(pinned, Object.fromEntries(npm.map((entry) => [entry.name, entry.version])));
});

test("go.mod files require the program versions of the table", () => {
  assert.ok(built.length >= 8);
  for (const { module, version, directory } of built) {
    const found = requirements(directory, (line) => line.includes(`${module} v`));
    assert.deepEqual(found, [`${module} ${version}`]);
  }
});

test("every direct requirement of a go.mod is in the table, and nothing else", () => {
  const programs = built.map(({ module, version }) => `${module} ${version}`);
  for (const directory of goModules) {
    const direct = requirements(directory, (line) => !line.endsWith("// indirect"));
    const listed = versionTable
      .filter(({ origin }) => origin.how === "go library" && origin.modules.includes(directory))
      .map((entry) => `${entry.name} ${entry.version}`);
    assert.deepEqual(
      direct.filter((requirement) => !programs.includes(requirement)).sort(),
      listed.sort(),
      directory,
    );
  }
});

test("go.mod files ask for no newer Go than the table", () => {
  for (const directory of goModules) {
    const wanted = /^go ([\d.]+)$/m.exec(read(path.join(directory, "go.mod")))?.[1] ?? "";
    const numbers = (v: string) => v.split(".").map(Number);
    const [major = 0, minor = 0, patch = 0] = numbers(wanted);
    const [leastMajor = 0, leastMinor = 0, leastPatch = 0] = numbers(versions.go.version);
    const value = (a: number, b: number, c: number) => (a * 1000 + b) * 1000 + c;
    const isMet = value(leastMajor, leastMinor, leastPatch) >= value(major, minor, patch);
    assert.ok(isMet, `${directory} wants Go ${wanted}`);
  }
});

test("programs and npm packages of Pulumi agree", () => {
  const version = (name: string) => versionTable.find((entry) => entry.name === name)?.version;
  assert.equal(version("@pulumi/pulumi"), versions.pulumi.version);
  assert.equal(version("@pulumi/pulumi"), versions["pulumi-language-nodejs"].version);
  assert.equal(version("@pulumi/command"), versions["pulumi-resource-command"].version);
  assert.equal(version("@pulumi/kubernetes"), versions["pulumi-resource-kubernetes"].version);
});

test("no name has two versions in one set", () => {
  const seen = new Set<string>();
  for (const entry of versionTable) {
    for (const set of entry.sets) {
      const key = `${set}/${entry.name}`;
      assert.ok(!seen.has(key), key);
      seen.add(key);
    }
  }
});

test("a digest is either whole or said to be unknown", () => {
  for (const { name, origin } of versionTable) {
    if ("sha256" in origin) assert.match(origin.sha256, /^[0-9a-f]{64}$/, name);
    if (origin.how === "official release") assert.match(origin.digest, /no digest known/, name);
  }
});

test("docs/dependencies.md names every dependency with its version", () => {
  const lines = read("docs/dependencies.md").split("\n");
  const isNamed = (name: string, version: string) =>
    lines.some((line) => line.includes(`\`${name}\``) && line.includes(version));
  const missing = versionTable
    .filter(({ name, version }) => !isNamed(name, version))
    .map(({ name, version }) => `${name} ${version}`);
  assert.deepEqual(missing, []);
  assert.deepEqual(
    debianPackages.filter(({ name }) => !isNamed(name, "")),
    [],
  );
});
