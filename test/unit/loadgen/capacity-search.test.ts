/** What a capacity search asks of the hosts, and what it leaves there. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { capacitySchema } from "../../../contracts/capacity.ts";
import { Failure } from "../../../contracts/failure.ts";
import { runCampaignOver } from "../../../loadgen/campaign.ts";
import { exampleDeployment, examplePlan, exampleTestbed } from "./example.ts";
import { type Answer, FakeHosts } from "./fake-hosts.ts";

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "ztbench-test-"));
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

const capacity = capacitySchema.parse({
  blocks: 1,
  sloMilliseconds: 10,
  startQps: 100,
  maxQps: 200,
  precision: 0.5,
  settleSeconds: 0.01,
  probeSeconds: 1,
  cooldownSeconds: 0,
  confirmations: 1,
  confirmSeconds: 1,
});

/** A campaign of two searches after its runs, on hosts whose every probe holds. */
async function search(answer: Answer, signal = new AbortController().signal) {
  const hosts = new FakeHosts(answer);
  const example = examplePlan(["baseline"]);
  const load = { ...example.load, warmupSeconds: 0.01, durationSeconds: 0.02 };
  const plan = { ...example, load: { ...load, prewarm: { rateQps: 50, seconds: 0 } }, capacity };
  const nothing = () => Promise.resolve();
  const ended = await runCampaignOver(hosts, {
    ...{ plan, planText: JSON.stringify(plan), testbed: exampleTestbed(), resume: false },
    bundleDir: join(scratch, "bundle"),
    deployer: {
      deploy: () => Promise.resolve(exampleDeployment()),
      configuration: () => ({}),
      destroy: nothing,
      proveAbsent: nothing,
    },
    hooks: {
      readback: () => Promise.resolve({}),
      facts: () => Promise.resolve({}),
      lease: { take: nothing, release: nothing },
    },
    judgeProbe: () => Promise.resolve({ passed: true, reasons: [] }),
    ...{ programs: [], commit: { id: "0".repeat(40), dirty: false }, versionSet: "lab" },
    ...{ warnings: [], progress: () => undefined, signal },
  }).catch((error: unknown) => error);
  return { asked: hosts.asked, ended };
}

/** Runs of the plan: the baseline, twice. */
const runs = 2;

test("an interrupted probe leaves neither its load nor its sampler on the hosts", async () => {
  const stop = new AbortController();
  let loads = 0;
  const { asked, ended } = await search((_host, script) => {
    if (script.title !== "load") return undefined;
    loads += 1;
    if (loads === runs + 1) stop.abort();
    return undefined;
  }, stop.signal);
  assert.ok(ended instanceof Failure && ended.code === "interrupted", String(ended));
  assert.equal(loads, runs + 1);
  const later = asked.slice(asked.lastIndexOf("client: load") + 1);
  const cleared = ["client", "gateway", "server"].map((host) => `${host}: clearing of a run`);
  assert.deepEqual(
    later.filter((line) => line.endsWith("clearing of a run")),
    cleared,
  );
});

test("no two probes of a campaign, nor a run of it, start units of the same name", async () => {
  const units: string[] = [];
  const { ended } = await search((_host, { title, text }) => {
    if (title === "load") units.push(/-unit=(ztbench-load-\S+)/.exec(text)?.[1] ?? "none");
    return undefined;
  });
  assert.ok(!(ended instanceof Error), String(ended));
  // Each of the two searches grows in three steps to the highest rate, and confirms it once.
  assert.equal(units.length, runs + 2 * 4);
  assert.equal(new Set(units).size, units.length, units.join(" "));
});
