import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, beforeEach, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { renderClusterGuard, renderClusterLease } from "../../../hosts/cluster/lease.ts";
import { type LeaseRequest, renderCampaignLease, renderLease } from "../../../hosts/lease.ts";
import { renderGuard } from "../../../hosts/readiness.ts";
import { renderHostScript } from "../../../hosts/runner.ts";
import { override, runBash } from "../../support/bash.ts";
import { exampleHost } from "./testbed.ts";

const host = exampleHost();
const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-lease-"));
const directory = path.join(scratch, "lease");
const here = `lease_directory=${directory}`;
beforeEach(() => {
  rmSync(directory, { recursive: true, force: true });
});
after(() => {
  rmSync(scratch, { recursive: true });
});

const jwt = { owner: "backend/jwt/1", stack: "jwt" };
const gateway = { owner: "backend/gateway/2", stack: "gateway" };

const lease = (request: LeaseRequest, verb: "create" | "remove") =>
  runBash(override(renderHostScript(renderLease(host, request)), here), verb);
const campaign = (token: string, action: "take" | "release") =>
  runBash(override(renderCampaignLease(host, token, action), here));
const guard = () => runBash(override(renderHostScript(renderGuard(host)), here), "remove");

const quiet = { exitCode: 0, stdout: "", stderr: "" };

test("a lease is taken once, again by the same owner, and given back", () => {
  assert.deepEqual(lease(jwt, "create"), quiet);
  assert.deepEqual(lease(jwt, "create"), quiet);
  assert.match(
    readFileSync(path.join(directory, "topology"), "utf8"),
    /^owner\tbackend\/jwt\/1\nstack\tjwt\ncampaign\t-\nsince\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$/,
  );
  assert.deepEqual(lease(jwt, "remove"), quiet);
  assert.equal(existsSync(directory), false);
});

test("a second topology is refused, and told the holder and the next step", () => {
  lease(jwt, "create");
  const { exitCode, stderr } = lease(gateway, "create");
  assert.equal(exitCode, 1);
  assert.match(stderr, /^lease: hosts are taken, client is held by stack jwt since 2.*Z \(owner/);
  assert.match(stderr, /\n {2}next: pulumi destroy -s jwt\n$/);
});

test("a lease of somebody else is not given back", () => {
  lease(jwt, "create");
  assert.deepEqual(lease(gateway, "remove"), quiet);
  assert.ok(existsSync(path.join(directory, "topology")));
});

test("giving back what is not held succeeds", () => {
  assert.deepEqual(lease(jwt, "remove"), quiet);
});

test("of many that try at the same time exactly one gets the lease", () => {
  const program = override(
    renderCampaignLease(host, "x", "take"),
    here,
    'for n in $(seq 12); do (lease_make topology "$n" s - && echo "$n") & done; wait',
    "exit 0",
  );
  assert.match(runBash(program).stdout, /^\d+\n$/);
});

test("during a campaign only its own topologies are let in", () => {
  assert.deepEqual(campaign("c-1", "take"), quiet);
  assert.deepEqual(campaign("c-1", "take"), quiet);
  const { exitCode, stderr } = lease(jwt, "create");
  assert.equal(exitCode, 1);
  assert.match(stderr, /client is held by campaign c-1 since/);
  assert.equal(existsSync(path.join(directory, "topology")), false, "and nothing is left");
  assert.equal(lease({ ...jwt, campaignToken: "c-2" }, "create").exitCode, 1);
  assert.deepEqual(lease({ ...jwt, campaignToken: "c-1" }, "create"), quiet);
});

test("a campaign is refused while a topology of somebody else is deployed", () => {
  lease(jwt, "create");
  const { exitCode, stderr } = campaign("c-1", "take");
  assert.equal(exitCode, 1);
  assert.match(stderr, /held by stack jwt/);
  assert.equal(existsSync(path.join(directory, "campaign")), false);
});

test("a resumed campaign finds its own topology and goes on", () => {
  campaign("c-1", "take");
  lease({ ...jwt, campaignToken: "c-1" }, "create");
  assert.deepEqual(campaign("c-1", "take"), quiet);
  assert.equal(campaign("c-2", "take").exitCode, 1);
});

test("the guard lets hosts go only when neither topology nor campaign holds them", () => {
  assert.deepEqual(guard(), quiet);
  lease(jwt, "create");
  assert.match(guard().stderr, /held by stack jwt/);
  lease(jwt, "remove");
  campaign("c-1", "take");
  assert.match(guard().stderr, /held by campaign c-1/);
  campaign("c-1", "release");
  assert.deepEqual(guard(), quiet);
});

const cluster = (owner: string, verb: "create" | "remove") =>
  runBash(
    override(
      renderHostScript(renderClusterLease(host, owner)),
      here,
      `cluster_files=${scratch}/files`,
    ),
    verb,
  );

test("a cluster keeps its hosts, and topologies come and go on them", () => {
  assert.deepEqual(cluster("a/cluster", "create"), quiet);
  assert.deepEqual(cluster("a/cluster", "create"), quiet);
  assert.match(cluster("b/cluster", "create").stderr, /^cluster: there is one, client is held by /);
  assert.match(
    guard().stderr,
    /held by stack cluster since 2.*\n +next: pulumi destroy -s cluster/,
  );
  assert.deepEqual(lease(jwt, "create"), quiet);
  assert.deepEqual(lease(jwt, "remove"), quiet);
  assert.deepEqual(cluster("b/cluster", "remove"), quiet);
  assert.equal(guard().exitCode, 1);
  assert.deepEqual(cluster("a/cluster", "remove"), quiet);
  assert.deepEqual(guard(), quiet);
});

test("a cluster neither comes nor goes while a topology holds its hosts", () => {
  const leave = () => runBash(override(renderHostScript(renderClusterGuard(host)), here), "remove");
  lease(jwt, "create");
  assert.match(cluster("a/cluster", "create").stderr, /held by stack jwt since/);
  assert.equal(existsSync(path.join(directory, "cluster")), false);
  assert.equal(leave().exitCode, 1);
  lease(jwt, "remove");
  assert.deepEqual(leave(), quiet);
});

test("names that would break the lease file are refused", () => {
  for (const owner of ["", "a\nb", "a\tb", "é"]) {
    assert.throws(() => renderLease(host, { owner, stack: "jwt" }), Failure, JSON.stringify(owner));
  }
});
