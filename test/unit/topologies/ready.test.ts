import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { probeRequestSchema } from "../../../contracts/deployment.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import { topologyNamed } from "../../../topologies/catalogue.ts";
import { renderNative } from "../../../topologies/native.ts";
import { readParameters } from "../../../topologies/parameters.ts";
import { renderReady } from "../../../topologies/ready.ts";
import { exampleTestbed } from "./example.ts";

const programs = mkdtempSync(path.join(tmpdir(), "ztbench-ready-"));
after(() => {
  rmSync(programs, { recursive: true });
});

/** Runs the ready script with a prober of our own in place of the real one. */
function runWith(prober: string) {
  writeFileSync(path.join(programs, "ztprobe"), `#!/bin/bash\n${prober}\n`, { mode: 0o755 });
  const topology = topologyNamed("jwt");
  const place = { testbed: exampleTestbed, scheduling: "rr" as const, programs };
  const { deployment } = renderNative(topology, readParameters(topology, {}), place);
  const input = renderHostScript(renderReady(deployment, "client", programs));
  const result = spawnSync("bash", ["-s", "create"], { input, encoding: "utf8", timeout: 20_000 });
  return { deployment, ...result };
}

const result = (id: string, passed: boolean, outcome: string) => ({
  id,
  passed,
  observed: { outcome },
  durationNs: 1,
});

test("asks all probes of the topology until they hold", () => {
  const { deployment, status, stdout } = runWith(`cat >${programs}/request`);
  assert.equal(status, 0);
  assert.equal(stdout, "");
  const asked: unknown = JSON.parse(readFileSync(path.join(programs, "request"), "utf8"));
  const request = probeRequestSchema.parse(asked);
  assert.equal(request.until, "positive");
  assert.deepEqual(request.probes, deployment.probes);
});

test("says what the probes saw that do not hold, and only those", () => {
  const results = {
    schema: "ztbench/probe-results/1",
    results: [result("no-token", true, "status"), result("valid-token", false, "no-response")],
  };
  writeFileSync(path.join(programs, "results"), JSON.stringify(results, null, 2));
  const { status, stderr } = runWith(`cat ${programs}/results; exit 1`);
  assert.equal(status, 1);
  assert.match(stderr, /^topology jwt at http:\/\/198\.18\.0\.30:8080\/: not ready after 15 s/);
  assert.match(stderr, /"id": "valid-token"/);
  assert.match(stderr, /"outcome": "no-response"/);
  assert.doesNotMatch(stderr, /no-token/);
});

test("says why the prober itself failed, if it did", () => {
  const { status, stderr } = runWith("echo 'ztprobe: cannot run' >&2; exit 2");
  assert.equal(status, 1);
  assert.match(stderr, /ztprobe: cannot run/);
});
