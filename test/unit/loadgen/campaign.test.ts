import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { openBundle } from "../../../analysis/bundle.ts";
import type { Deployment } from "../../../contracts/deployment.ts";
import { Failure, type FailureCode } from "../../../contracts/failure.ts";
import type { Plan } from "../../../contracts/plan.ts";
import { runCampaignOver } from "../../../loadgen/campaign.ts";
import type { CampaignOptions } from "../../../loadgen/options.ts";
import type { CampaignEvent } from "../../../loadgen/progress.ts";
import { exampleDeployment, examplePlan, exampleTestbed } from "./example.ts";
import { answerProbes, FakeHosts } from "./fake-hosts.ts";

let scratch: string;
let bundleDir: string;

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "ztbench-test-"));
  bundleDir = join(scratch, "bundle");
});

afterEach(() => rm(scratch, { recursive: true, force: true }));

type Scene = {
  readonly plan?: Plan;
  readonly hosts?: FakeHosts;
  /** Called with the number of the deployment, from 1. */
  readonly deploy?: (count: number, topology: string) => Deployment;
  readonly given?: Partial<CampaignOptions>;
};

/** Runs a campaign on fake hosts and tells in order what was asked of whom. */
async function play({ plan = examplePlan(["baseline", "jwt"]), hosts, deploy, given }: Scene) {
  const transport = hosts ?? new FakeHosts();
  const { asked } = transport;
  let deployed = 0;
  const events: CampaignEvent[] = [];
  const note = (text: string) => () => {
    asked.push(text);
    return Promise.resolve();
  };
  const quick = { ...plan, load: { ...plan.load, warmupSeconds: 0.01, durationSeconds: 0.02 } };
  const result = runCampaignOver(transport, {
    plan: quick,
    planText: JSON.stringify(quick),
    testbed: exampleTestbed(),
    bundleDir,
    resume: false,
    deployer: {
      async deploy(treatment) {
        await note(`deploy ${treatment.topology}`)();
        deployed += 1;
        return (
          deploy?.(deployed, treatment.topology) ??
          exampleDeployment({ topology: treatment.topology })
        );
      },
      configuration: () => ({ "server/units/echo.service": "[Service]" }),
      destroy: (topology) => note(`destroy ${topology}`)(),
      proveAbsent: (topology) => note(`absent ${topology}`)(),
    },
    hooks: {
      readback: () => Promise.resolve({ server: { somaxconn: "applied 32768" } }),
      facts: () => Promise.resolve({ server: { kernel: "6.1" } }),
      lease: { take: note("take lease"), release: note("release lease") },
    },
    programs: [],
    commit: { id: "0".repeat(40), dirty: false },
    versionSet: "lab",
    warnings: [],
    progress: (event) => events.push(event),
    signal: new AbortController().signal,
    ...given,
  });
  const done = await result.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  return { ...done, asked, events };
}

type Played = Awaited<ReturnType<typeof play>>;

function failureOf(played: Played, code: FailureCode): string {
  const error = "error" in played ? played.error : undefined;
  assert.ok(error instanceof Failure, `a failure, not ${String(error)}`);
  assert.equal(error.code, code);
  return error.message;
}

const records = async () => (await openBundle(bundleDir)).runs.map(({ record }) => record);

test("takes each run through its phases in order, one topology at a time", async () => {
  const plan = examplePlan(["baseline"]);
  const played = await play({ plan });
  assert.deepEqual("value" in played && played.value, { bundleDir, runs: 2, failed: 0 });
  const run = [
    "deploy baseline",
    "client: probes",
    "client: start of the sampler",
    "gateway: start of the sampler",
    "server: start of the sampler",
    "client: load",
    "client: collection of results",
    "gateway: collection of results",
    "server: collection of results",
    "client: probes",
    "client: clearing of a run",
    "gateway: clearing of a run",
    "server: clearing of a run",
    "destroy baseline",
    "absent baseline",
  ];
  const sweep = ["client", "gateway", "server"].map(
    (host) => `${host}: clearing of earlier campaigns`,
  );
  assert.deepEqual(played.asked, ["take lease", ...sweep, ...run, ...run, "release lease"]);
});

test("writes a bundle that analysis accepts, with the planned order and the facts", async () => {
  await play({});
  const { manifest, runs } = await openBundle(bundleDir);
  assert.equal(manifest.order.length, 3);
  assert.deepEqual(manifest.facts, { server: { kernel: "6.1" } });
  assert.deepEqual(
    runs.map(({ record: { run, label, arm, failure } }) => [run, label, arm, failure]),
    manifest.order.map(({ run, label, arm }) => [run, label, arm, undefined]),
  );
});

test("keeps what was put on the hosts beside each run, and hashes it", async () => {
  await play({});
  const [first] = (await openBundle(bundleDir)).runs;
  const file = "configuration/server/units/echo.service";
  assert.ok(first !== undefined && file in first.record.files);
  assert.equal(readFileSync(join(bundleDir, "runs", first.name, file), "utf8"), "[Service]");
});

test("tells an estimate first, then each run with its number and the time left", async () => {
  const { events } = await play({});
  assert.equal(events[0]?.kind, "estimate");
  const told = events.flatMap((event) => (event.kind === "run" ? [event] : []));
  assert.deepEqual(
    told.map(({ run, of }) => [run.run, of]),
    [
      [1, 3],
      [2, 3],
      [3, 3],
    ],
  );
  const [first, ...later] = told.map(({ secondsLeft }) => secondsLeft);
  assert.equal(first, events[0].seconds, "nothing is learnt before the first run");
  assert.ok(later.every((seconds) => seconds > 0));
  const last = events.at(-1);
  assert.ok(last?.kind === "finished" && last.secondsLeft === 0);
});

test("keeps a run that could not be deployed, goes on, and repeats it at the end", async () => {
  const played = await play({
    deploy: (count, topology) => {
      if (count === 1) throw new Failure("testbed", "jwt: not deployed, port is in use");
      return exampleDeployment({ topology });
    },
  });
  assert.deepEqual("value" in played && played.value, { bundleDir, runs: 4, failed: 1 });
  const [first, , , fourth] = await records();
  assert.equal(first?.schema, "ztbench/failed-run/1");
  assert.equal(first.failure, "jwt: not deployed, port is in use");
  assert.equal(fourth?.label, first.label);
  assert.equal(fourth.position, 4);
});

test("sends no load when a negative probe was not refused, and keeps what it saw", async () => {
  const deployment = exampleDeployment();
  const [positive] = deployment.probes;
  assert.ok(positive);
  const expect = { outcome: "status", status: 401 } as const;
  const probes = [positive, { ...positive, id: "no-token", kind: "negative", expect } as const];
  let asked = 0;
  const hosts = new FakeHosts((_host, script) => {
    if (script.title !== "probes") return undefined;
    asked += 1;
    const stdout = answerProbes(script.text, (id) => id !== "no-token" || asked > 1);
    return { code: 0, stdout, stderr: "" };
  });
  const played = await play({
    hosts,
    plan: examplePlan(["baseline"]),
    deploy: () => ({ ...deployment, probes }),
  });
  assert.deepEqual("value" in played && played.value, { bundleDir, runs: 3, failed: 1 });
  assert.equal(hosts.asked.filter((line) => line === "client: load").length, 2);
  const [first] = await records();
  assert.equal(
    first?.failure,
    "probe no-token before the load: expected status 401, found status 200",
  );
  assert.ok(first.schema === "ztbench/failed-run/1" && first.probes?.before.results.length === 2);
});

test("keeps rows and record of a run whose probes failed after its load", async () => {
  let asked = 0;
  const hosts = new FakeHosts((_host, script) => {
    if (script.title !== "probes") return undefined;
    asked += 1;
    return { code: 0, stdout: answerProbes(script.text, () => asked !== 2), stderr: "" };
  });
  await play({ hosts });
  const [first] = await records();
  assert.equal(first?.schema, "ztbench/record/1");
  assert.match(first.failure ?? "", /^probe answers after the load: expected status 200/);
  assert.ok("requests.csv.gz" in first.files);
});

test("names exit code and last words of a load driver that failed", async () => {
  let sent = 0;
  const hosts = new FakeHosts((_host, script) => {
    if (script.title !== "load") return undefined;
    sent += 1;
    return sent === 1 ? { code: 2, stdout: "", stderr: "ztload: too many open files" } : undefined;
  });
  await play({ hosts });
  const [first] = await records();
  assert.equal(
    first?.failure,
    "load driver on host client: ended with exit code 2, ztload: too many open files",
  );
});

test("stops after more than three failures in a row, all destroyed and released", async () => {
  const played = await play({
    plan: { ...examplePlan(["baseline", "jwt"]), blocks: 4 },
    deploy: () => {
      throw new Failure("testbed", "nothing works");
    },
  });
  assert.match(failureOf(played, "load"), /4 runs in a row broke off.*nothing works/);
  const count = (start: string) => played.asked.filter((line) => line.startsWith(start)).length;
  assert.deepEqual([count("deploy"), count("destroy"), count("absent")], [4, 4, 4]);
  assert.equal(played.asked.at(-1), "release lease");
  assert.equal((await records()).length, 4);
});

test("ends at once when a topology cannot be destroyed, the run being kept", async () => {
  const deployer: CampaignOptions["deployer"] = {
    deploy: () => Promise.resolve(exampleDeployment()),
    configuration: () => ({}),
    destroy: () => Promise.reject(new Failure("testbed", "baseline: not destroyed")),
    proveAbsent: () => Promise.resolve(),
  };
  const played = await play({ given: { deployer } });
  assert.equal(failureOf(played, "testbed"), "baseline: not destroyed");
  assert.equal((await records()).length, 1);
  assert.equal(played.asked.at(-1), "release lease");
});

test("lets a bug through as it is, but clears the hosts first", async () => {
  const played = await play({
    deploy: () => {
      throw new TypeError("a bug");
    },
  });
  assert.ok("error" in played && played.error instanceof TypeError);
  assert.equal(played.asked.at(-1), "release lease");
  assert.ok(played.asked.some((line) => line.startsWith("absent")));
  assert.equal((await records()).length, 0);
});

test("drops the run in progress when interrupted, and says how to go on", async () => {
  const stop = new AbortController();
  const played = await play({
    given: {
      signal: stop.signal,
      progress: (event) => {
        if (event.kind === "phase" && event.run.run === 2 && event.phase === "start") stop.abort();
      },
    },
  });
  assert.match(failureOf(played, "interrupted"), /interrupted, 1 runs are kept in /);
  assert.equal((await records()).length, 1);
  const last = played.asked.slice(played.asked.lastIndexOf("client: probes") + 1);
  assert.ok(!last.includes("client: load"));
  const topology = (await openBundle(bundleDir)).manifest.order[1]?.label ?? "";
  assert.deepEqual(
    last.filter((line) => !line.includes(":")),
    [`destroy ${topology}`, `absent ${topology}`, "release lease"],
  );
});

test("goes on where a campaign was interrupted, with the same order", async () => {
  const stop = new AbortController();
  const progress = (event: CampaignEvent) => {
    if (event.kind === "finished" && event.run.run === 2) stop.abort();
  };
  await play({ given: { signal: stop.signal, progress } });
  const before = await records();
  const played = await play({ given: { resume: true } });
  assert.deepEqual("value" in played && played.value, { bundleDir, runs: 3, failed: 0 });
  const after = await records();
  assert.deepEqual(after.slice(0, 2), before);
  assert.deepEqual(
    after.map(({ run }) => run),
    [1, 2, 3],
  );
});

test("warns in the manifest when the tuning changed during a block", async () => {
  let reads = 0;
  const played = await play({
    given: {
      hooks: {
        readback: () => {
          reads += 1;
          return Promise.resolve({ server: { somaxconn: reads === 1 ? "32768" : "128" } });
        },
        facts: () => Promise.resolve({}),
        lease: { take: () => Promise.resolve(), release: () => Promise.resolve() },
      },
    },
  });
  const text = "block 1: tuning changed, host server: somaxconn was 32768, is 128";
  assert.deepEqual((await openBundle(bundleDir)).manifest.warnings, [text]);
  assert.ok(played.events.some((event) => event.kind === "notice" && event.text === text));
});

test("warns in the manifest when a campaign goes on at another boot of the lab", async () => {
  await play({});
  const testbed = { ...exampleTestbed(), instance: "fedcba9876543210" };
  await play({ given: { resume: true, testbed } });
  const { warnings } = (await openBundle(bundleDir)).manifest;
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /on another boot of the lab, fedcba9876543210$/);
});

const refusals: readonly [string, Partial<CampaignOptions>, RegExp][] = [
  [
    "plan",
    { planText: "other" },
    /another plan, sha256 [0-9a-f]{64} in the bundle, [0-9a-f]{64} now/,
  ],
  ["version set", { versionSet: "era" }, /version set is era, the bundle has lab/],
  [
    "testbed",
    { testbed: { ...exampleTestbed(), name: "rack" } },
    /testbed is rack, the bundle has example/,
  ],
];

for (const [what, given, says] of refusals) {
  test(`refuses to go on with another ${what}`, async () => {
    await play({});
    const played = await play({ given: { resume: true, ...given } });
    assert.match(failureOf(played, "comparison"), says);
    assert.equal(played.asked.at(-1), "release lease");
  });
}

test("refuses a directory that holds anything, unless told to go on", async () => {
  await mkdir(bundleDir);
  await writeFile(join(bundleDir, "notes.txt"), "mine");
  assert.match(failureOf(await play({}), "usage"), /must be a new or empty directory/);
  assert.equal(await readFile(join(bundleDir, "notes.txt"), "utf8"), "mine");
});

test("says that there is nothing to go on with", async () => {
  const played = await play({ given: { resume: true } });
  assert.match(failureOf(played, "usage"), /nothing to resume/);
});

test("before a cold start only the path is probed, and counters are read before the load", async () => {
  const plan = examplePlan(["baseline"]);
  const cold = plan.treatments.map((t) => ({ ...t, condition: "cold-start" as const }));
  const [answers] = exampleDeployment().probes;
  assert.ok(answers);
  const probes = [answers, { ...answers, id: "refuses", kind: "negative" as const }];
  const probed: string[][] = [];
  const hosts = new FakeHosts((_, script) => {
    if (script.title === "probes") {
      const ids = [...script.text.matchAll(/"id":"([a-z-]+)"/g)].map(([, id = ""]) => id);
      probed.push(ids);
    }
    return undefined;
  });
  const { asked, events, ...ended } = await play({
    plan: { ...plan, treatments: cold },
    hosts,
    deploy: () => exampleDeployment({ probes }),
  });
  assert.equal("value" in ended ? ended.value.failed : ended.error, 0);
  assert.deepEqual(probed.slice(0, 2), [["answers"], ["answers", "refuses"]]);
  const place = (what: string) => asked.indexOf(`client: ${what}`);
  assert.ok(place("start of the sampler") < place("connections and counters"));
  assert.ok(place("connections and counters") < place("load"));
  const phases = events.flatMap((event) => (event.kind === "phase" ? [event.phase] : []));
  assert.ok(!phases.includes("warm-up") && phases.includes("load"));
});

test("measures a run that is judged invalid once more, at the end of its block, and keeps both", async () => {
  const judged: string[] = [];
  const watch = {
    judge: (_directory: string, name: string) => {
      judged.push(name);
      return Promise.resolve(judged.length === 1 ? "lag: too late" : undefined);
    },
    enough: () => Promise.resolve(undefined),
  };
  const plan = examplePlan(["baseline"]);
  const played = await play({ plan, given: { watch } });
  assert.deepEqual("value" in played && played.value, { bundleDir, runs: 3, failed: 1 });
  const found = await records();
  assert.deepEqual(
    found.map(({ run, arm, failure }) => [run, arm, failure]),
    [
      [1, found[0]?.arm, undefined],
      [2, found[1]?.arm, undefined],
      [3, found[0]?.arm, undefined],
    ],
  );
  assert.equal(judged.length, 3);
  const { manifest } = await openBundle(bundleDir);
  assert.deepEqual(
    manifest.readbacks?.map(({ block }) => block),
    Array.from({ length: plan.blocks }, (_, index) => index + 1),
  );
});
