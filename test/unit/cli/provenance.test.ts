import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import * as library from "ro-crate";
import { z } from "zod";
import { openBundle } from "../../../analysis/bundle.ts";
import { renderCrate } from "../../../analysis/exports/crate.ts";
import { analyseBundle } from "../../../analysis/report.ts";
import { deriveResults } from "../../../cli/results.ts";
import { makeBundle, removeBundle, steadyRows } from "../../support/bundle.ts";

let directory: string;
before(async () => {
  directory = await makeBundle({
    blocks: 2,
    durationSeconds: 2,
    content: ({ block, label }, plan) => ({
      rows: steadyRows(plan, () => 200_000),
      cpuPerRequestUs: 100,
      ...(label === "gateway" &&
        block === 2 && { edit: (record) => ({ ...record, failure: 'a "quoted" <end>\n' }) }),
    }),
  });
  await deriveResults(directory, false);
});
after(() => removeBundle(directory));

const read = (file: string) => readFileSync(path.join(directory, file), "utf8");
const sha256 = (file: string) =>
  createHash("sha256")
    .update(readFileSync(path.join(directory, file)))
    .digest("hex");

/** The library has types of its reader, and none of its validator. */
const { Validator } = library as unknown as {
  readonly Validator: new () => {
    parseJSON(text: string): void;
    rootDataEntity(): void;
    checkFiles(files: Record<string, object>): void;
    readonly results: unknown;
  };
};

type Entity = Readonly<Record<string, readonly unknown[]>> & { readonly "@id": readonly string[] };

const documentSchema = z.object({
  "@graph": z.array(z.looseObject({ "@id": z.string() })),
});

/** What the library read, as plain entities whose values are lists. */
function entitiesOf(text: string): Map<string, Entity> {
  const crate = new library.ROCrate(z.looseObject({}).parse(JSON.parse(text)));
  const { "@graph": graph } = documentSchema.parse(JSON.parse(JSON.stringify(crate.toJSON())));
  return new Map(
    graph.map((entity) => {
      const lists = Object.entries(entity).map(([key, value]): [string, unknown[]] => [
        key,
        Array.isArray(value) ? value : [value],
      ]);
      return [entity["@id"], { ...Object.fromEntries(lists), "@id": [entity["@id"]] }];
    }),
  );
}

const referencesSchema = z.array(z.object({ "@id": z.string() }));
const idsOf = (value: unknown) => referencesSchema.parse(value).map((found) => found["@id"]);

test("the reference validator finds the root complete and every file of the crate there", () => {
  const validator = new Validator();
  validator.parseJSON(read("ro-crate-metadata.json"));
  validator.rootDataEntity();
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  validator.checkFiles(
    Object.fromEntries(
      files.map((file) => {
        const isDir = statSync(path.join(directory, file)).isDirectory();
        return [isDir ? `${file}/` : file, { exists: true, inCrate: false, isDir }];
      }),
    ),
  );
  const results = z
    .array(z.looseObject({ id: z.string(), status: z.string(), entity: z.string().optional() }))
    .parse(validator.results);
  assert.deepEqual(
    results.filter(({ status }) => status === "error"),
    [],
  );
  assert.ok(results.some(({ id, status }) => id === "licenseRequired" && status === "success"));
  // Directories inside of runs and SHA256SUMS are told by what they hold; files are all described.
  const left = results
    .filter(({ id }) => id === "validCrateDataEntityInCrateDir")
    .map(({ entity }) => entity ?? "")
    .filter((entity) => !entity.endsWith("/"));
  assert.deepEqual(left, ["SHA256SUMS"]);
});

test("every action has instrument, object and result that are in the crate", () => {
  const entities = entitiesOf(read("ro-crate-metadata.json"));
  const actions = [...entities.values()].filter((entity) =>
    entity["@type"]?.includes("CreateAction"),
  );
  // The campaign, its six runs and the analysis.
  assert.equal(actions.length, 8);
  for (const action of actions) {
    for (const key of ["instrument", "object", "result"]) {
      for (const id of idsOf(action[key])) assert.ok(entities.has(id), `${key} ${id}`);
    }
  }
  const mentioned = idsOf(entities.get("./")?.["mentions"]);
  assert.deepEqual(mentioned.sort(), actions.flatMap((action) => action["@id"]).sort());
  assert.deepEqual(idsOf(entities.get("#run-2")?.["instrument"]), ["#program-vegeta"]);
});

test("the crate conforms to the profile of process runs, and names it", () => {
  const entities = entitiesOf(read("ro-crate-metadata.json"));
  const [profile] = idsOf(entities.get("./")?.["conformsTo"]);
  assert.equal(profile, "https://w3id.org/ro/wfrun/process/0.5");
  assert.deepEqual(entities.get(profile)?.["version"], ["0.5"]);
  assert.deepEqual(idsOf(entities.get("ro-crate-metadata.json")?.["conformsTo"]), [
    "https://w3id.org/ro/crate/1.2",
  ]);
});

test("a run that broke off is a failed action, with its reason as it was", () => {
  const entities = entitiesOf(read("ro-crate-metadata.json"));
  const failed = [...entities.values()].filter(({ error }) => error !== undefined);
  assert.deepEqual(
    failed.map(({ "@id": id, error }) => [id, error]),
    [[["#run-5"], ['a "quoted" <end>\n']]],
  );
  assert.deepEqual(idsOf(failed[0]?.["actionStatus"]), ["http://schema.org/FailedActionStatus"]);
});

test("which provider ran, upstream's or a stand-in, is in the crate with its digest", () => {
  const program = entitiesOf(read("ro-crate-metadata.json")).get(
    "#program-pulumi-resource-command",
  );
  assert.deepEqual(program?.["description"], ["stand-in: own code"]);
  assert.deepEqual(program["identifier"], [`sha256:${"2".repeat(64)}`]);
});

test("raw and derived files carry the digests that they have", () => {
  const entities = entitiesOf(read("ro-crate-metadata.json"));
  for (const file of ["plan.yaml", "tables/loss.csv", "runs/001-b1-baseline-a/requests.csv.gz"]) {
    assert.deepEqual(entities.get(file)?.["sha256"], [sha256(file)], file);
  }
});

test("names that no IRI may hold are written so that a reader finds them again", async () => {
  const bundle = await openBundle(directory);
  const analysis = await analyseBundle(bundle, {});
  const odd = "runs/001-b1-baseline-a/units/a b#c?d%e\u00e9@1.service";
  const sums = new Map([...bundle.sums, [odd, "0".repeat(64)] as const]);
  const entities = entitiesOf(renderCrate({ ...bundle, sums }, analysis, new Map()));
  const found = [...entities.values()].find(({ name }) => name?.[0] === odd);
  assert.ok(found !== undefined);
  const [id = ""] = found["@id"];
  assert.doesNotMatch(id, /[ #?]/);
  assert.equal(decodeURIComponent(id), odd);
});

test("the statement about all gates names what it is about, and what failed", () => {
  const statement = z
    .object({
      _type: z.literal("https://in-toto.io/Statement/v1"),
      subject: z.array(z.object({ name: z.string(), digest: z.object({ sha256: z.string() }) })),
      predicateType: z.literal("https://in-toto.io/attestation/test-result/v0.1"),
      predicate: z.object({
        result: z.enum(["PASSED", "WARNED", "FAILED"]),
        configuration: z.array(z.object({ name: z.string() })),
        passedTests: z.array(z.string()),
        warnedTests: z.array(z.string()),
        failedTests: z.array(z.string()),
      }),
    })
    .parse(JSON.parse(read("test-result.intoto.json")));
  const subjects = new Map(statement.subject.map(({ name, digest }) => [name, digest.sha256]));
  assert.equal(subjects.get("SHA256SUMS"), sha256("SHA256SUMS"));
  assert.equal(subjects.get("tables/loss.json"), sha256("tables/loss.json"));
  const { result, passedTests, failedTests } = statement.predicate;
  assert.equal(result, "FAILED");
  assert.deepEqual(failedTests, ["005-b2-gateway-a/completed"]);
  assert.ok(passedTests.includes("001-b1-baseline-a/goodput"));
});
