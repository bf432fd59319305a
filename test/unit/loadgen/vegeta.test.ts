import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../../../contracts/deployment.ts";
import { type LoadSettings, loadOf, loadSchema, treatmentSchema } from "../../../contracts/plan.ts";
import {
  type Attack,
  attackCommand,
  prewarmCommand,
  splitCommand,
  targetsCommand,
} from "../../../loadgen/vegeta.ts";

const load: LoadSettings = loadSchema.parse({
  rateQps: 1000,
  warmupSeconds: 4,
  durationSeconds: 12,
  connections: 32,
});

const entries = {
  h1: { host: "client", url: "http://198.18.0.30:8080/", http: "1.1", headers: {} },
  h2c: { host: "client", url: "http://198.18.0.30:8080/", http: "2", headers: {} },
  "h1 over TLS": { host: "client", url: "https://198.18.0.20:8443/", http: "1.1", headers: {} },
  "h2 over TLS": { host: "client", url: "https://198.18.0.20:8443/", http: "2", headers: {} },
} satisfies Record<string, Deployment["entry"]>;

function attack(treatment: object, changes: Partial<Attack> = {}): Attack {
  return {
    treatment: treatmentSchema.parse({ label: "a", topology: "a", ...treatment }),
    load,
    entry: entries.h1,
    files: {
      targets: "/r/targets",
      records: "/r/records",
      plan: "/r/plan.json",
      prewarm: "/r/prewarm",
    },
    cpuCount: 1,
    seed: 7,
    ...changes,
  };
}

const paced =
  "/var/lib/ztbench/bin/ztload attack -targets /r/targets -output /r/records -plan /r/plan.json " +
  "-rate 1000 -duration 16000000000ns -prewarm-rate 50 -prewarm 2000000000ns " +
  "-arrival uniform -seed 7 -timeout 5000000000ns -max-body 0 " +
  "-workers 64 -max-workers 4000 -connections 32 -max-connections 32 -cpus 1";

const cli =
  "/var/lib/ztbench/bin/vegeta -cpus 1 attack -targets /r/targets -format http " +
  "-output /r/records -rate 1000/1s -duration 16000000000ns -timeout 5000000000ns -max-body 0 " +
  "-redirects -1 -dns-ttl -1s -workers 64 -max-workers 4000 -connections 32 " +
  "-max-connections 32 -keepalive=true -session-tickets=false";

const commands: readonly [keyof typeof entries, string, string][] = [
  ["h1", paced, `${cli} -http2=false`],
  ["h2c", `${paced} -h2c`, `${cli} -http2=false -h2c`],
  ["h1 over TLS", paced, `${cli} -http2=false`],
  ["h2 over TLS", `${paced} -http2`, `${cli} -http2=true`],
];

for (const [name, ownCommand, cliCommand] of commands) {
  test(`pins every flag of both drivers for an entry that speaks ${name}`, () => {
    const entry = entries[name];
    assert.equal(attackCommand(attack({}, { entry })).join(" "), ownCommand);
    assert.equal(attackCommand(attack({ driver: "vegeta" }, { entry })).join(" "), cliCommand);
  });
}

const changes: readonly [string, object, Partial<Attack>, string][] = [
  ["arrival and seed", { arrival: "poisson" }, { seed: 9 }, "-arrival poisson -seed 9"],
  ["rate", {}, { load: { ...load, rateQps: 42_000 } }, "-rate 42000"],
  [
    "workers",
    {},
    { load: { ...load, workers: 10, maxWorkers: 40 } },
    "-workers 10 -max-workers 40",
  ],
  ["connections", {}, { load: { ...load, connections: 8 } }, "-connections 8 -max-connections 8"],
  ["time-out", {}, { load: { ...load, timeoutSeconds: 0.5 } }, "-timeout 500000000ns"],
  [
    "fractions of seconds",
    {},
    { load: { ...load, warmupSeconds: 0.1, durationSeconds: 0.2 } },
    "-duration 300000000ns",
  ],
  ["CPUs that are not reserved", {}, { cpuCount: undefined }, "-cpus 0"],
];

for (const [name, treatment, change, words] of changes) {
  test(`carries ${name} over to the paced driver`, () => {
    assert.match(attackCommand(attack(treatment, change)).join(" "), new RegExp(`${words}( |$)`));
  });
}

test("leaves GOMAXPROCS of the vegeta command line alone where no CPU is reserved", () => {
  const argv = attackCommand(attack({ driver: "vegeta" }, { cpuCount: undefined }));
  assert.deepEqual(argv.slice(0, 2), ["/var/lib/ztbench/bin/vegeta", "attack"]);
});

test("splits at the end of the warm-up, with start and pre-warming of the paced driver only", () => {
  const rate = "-rate 1000 -duration 16000000000ns";
  const rest = "-arrival uniform -seed 7 -warmup 4000000000ns";
  const begin = "/var/lib/ztbench/bin/ztload split -in /r/records -out /r/out";
  assert.equal(
    splitCommand(attack({}), "/r/out").join(" "),
    `${begin} -plan /r/plan.json ${rate} -prewarm-rate 50 -prewarm 2000000000ns ${rest}`,
  );
  assert.equal(
    splitCommand(attack({ driver: "vegeta" }), "/r/out").join(" "),
    `${begin} ${rate} ${rest}`,
  );
});

test("pre-warms the command line by an attack of the same flags at the low rate", () => {
  const slow = cli
    .replace("/r/records", "/r/prewarm")
    .replace("1000/1s -duration 16000000000ns", "50/1s -duration 2000000000ns");
  const command = prewarmCommand(attack({ driver: "vegeta" }));
  assert.equal(command?.join(" "), `${slow} -http2=false`);
  assert.equal(prewarmCommand(attack({})), undefined);
});

const coldTreatment = { driver: "vegeta", condition: "cold-start" };
const coldLoad = loadOf({ load }, attack(coldTreatment).treatment);

test("nothing is sent before a cold start, and all of it is measured", () => {
  const cold = attack(coldTreatment, { load: coldLoad });
  assert.equal(prewarmCommand(cold), undefined);
  assert.match(attackCommand(cold).join(" "), / -duration 12000000000ns /);
  assert.match(splitCommand(cold, "/r/out").join(" "), / -warmup 0ns$/);
  const paced = attack({ condition: "cold-start" }, { load: coldLoad });
  assert.doesNotMatch(attackCommand(paced).join(" "), /prewarm/);
});

test("the driver's own default bounds no connections and keeps ten thousand idle ones", () => {
  const cold = { ...coldTreatment, connectionLimit: "driver-default" };
  const words = attackCommand(attack(cold, { load: coldLoad })).join(" ");
  assert.match(words, / -connections 10000 -max-connections 0 /);
});

test("names the file of tokens and the headers of the entry, and asks for no compression", () => {
  const entry = {
    ...entries.h1,
    tokensFile: "/run/ztbench/tokens",
    headers: { "X-User-Id": "user-000001" },
  };
  assert.deepEqual(targetsCommand(entry, "/r/targets"), [
    "/var/lib/ztbench/bin/ztload",
    "targets",
    ...["-url", "http://198.18.0.30:8080/"],
    ...["-tokens", "/run/ztbench/tokens"],
    ...["-header", "Accept-Encoding: identity"],
    ...["-header", "X-User-Id: user-000001"],
    ...["-out", "/r/targets"],
  ]);
});
