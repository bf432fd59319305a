import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { deploymentSchema, type Deployment } from "../../../contracts/deployment.ts";
import { catalogue, topologyNamed } from "../../../topologies/catalogue.ts";
import { renderNative, type Rendering } from "../../../topologies/native.ts";
import { readParameters } from "../../../topologies/parameters.ts";
import { assertGolden } from "../../support/golden.ts";
import { exampleTestbed } from "./example.ts";

const programs = "/var/lib/ztbench/bin";

function render(name: string, given: Record<string, unknown> = {}, testbed = exampleTestbed) {
  const topology = topologyNamed(name);
  const place = { testbed, scheduling: testbed.scheduling, programs };
  return renderNative(topology, readParameters(topology, given), place);
}

function unitText(name: string, unit: string, testbed = exampleTestbed): string {
  const units = render(name, {}, testbed).hosts.flatMap((host) => host.units);
  const found = units.find((candidate) => candidate.name === unit);
  assert.ok(found, `${name} has ${unit}`);
  return found.text;
}

/** Everything that is rendered, as text that shows changes line by line. */
function describe({ hosts, deployment }: Rendering): string {
  const section = (title: string, text: string) => `===== ${title}\n${text.trimEnd()}\n\n`;
  const parts = hosts.flatMap(({ host, root, after, directories, files, units, firewall }) => [
    section(`${host}: payload`, JSON.stringify({ root, after, directories }, null, 2)),
    ...files.map((file) => section(`${host}: ${file.path} (${file.mode})`, file.content)),
    ...units.map((unit) => section(`${host}: ${unit.name} on ${unit.listens.join()}`, unit.text)),
    ...(firewall === undefined ? [] : [section(`${host}: table ${firewall.table}`, firewall.text)]),
  ]);
  return [...parts, section("deployment", JSON.stringify(deployment, null, 2))].join("");
}

function probe(deployment: Deployment, id: string) {
  const found = deployment.probes.find((candidate) => candidate.id === id);
  assert.ok(found, `there is a probe ${id}`);
  return found;
}

for (const name of Object.keys(catalogue)) {
  test(`${name} renders what its golden file holds`, () => {
    assertGolden(path.join(import.meta.dirname, "golden", `${name}.txt`), describe(render(name)));
  });

  test(`${name} yields a valid deployment document with a positive probe`, () => {
    const { deployment } = render(name);
    assert.deepEqual(deploymentSchema.parse(deployment), deployment);
    assert.ok(deployment.probes.some(({ kind }) => kind === "positive"));
    const ids = deployment.probes.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
  });

  test(`${name} renders the same twice`, () => {
    assert.deepEqual(render(name), render(name));
  });
}

test("the digest changes with a parameter that changes what is put on a host", () => {
  const digest = (given: Record<string, unknown>) =>
    render("jwt", given).deployment.configurationDigest;
  assert.notEqual(digest({}), digest({ bodyBytes: 257 }));
  assert.equal(digest({}), digest({ bodyBytes: 256 }));
});

test("baseline documents that a forged identity passes", () => {
  const forged = probe(render("baseline").deployment, "forged-identity");
  assert.equal(forged.kind, "positive");
  assert.match(forged.shows, /not stopped/);
});

test("only the service and the gateway count as cost, never the issuer", () => {
  const units = render("gateway").deployment.units;
  assert.deepEqual(
    units.map((unit) => [unit.program, unit.dataPlane]),
    [
      ["ztissuer", false],
      ["envoy", true],
      ["ztecho", true],
    ],
  );
});

test("units get the CPUs, threads and scheduling class of the testbed", () => {
  const service = unitText("baseline", "ztbench-service.service");
  assert.match(service, /^CPUAffinity=1,3-5$/m);
  assert.match(service, /^Environment=GOMAXPROCS=4$/m);
  assert.match(service, /^CPUSchedulingPolicy=rr$/m);
  const gateway = unitText("gateway", "ztbench-gateway.service");
  assert.match(gateway, /^CPUAffinity=1-2$/m);
  assert.match(gateway, /^ExecStart=.* --concurrency 2$/m);
});

test("where no CPUs are reserved, programs are neither pinned nor told a number of threads", () => {
  const hosts = exampleTestbed.hosts.map((host) => ({
    ...host,
    cpus: { system: "", irq: "", load: "", proxy: "", service: "" },
  }));
  const free = { ...exampleTestbed, hosts, scheduling: "other" as const };
  for (const unit of ["issuer", "gateway", "service"]) {
    const text = unitText("gateway", `ztbench-${unit}.service`, free);
    assert.doesNotMatch(text, /CPUAffinity|GOMAXPROCS|--concurrency|CPUScheduling/);
  }
});

test("the issuer is pinned to the system's CPUs and never runs ahead of what is measured", () => {
  const issuer = unitText("jwt", "ztbench-issuer.service");
  assert.match(issuer, /^CPUAffinity=0$/m);
  assert.doesNotMatch(issuer, /CPUSchedulingPolicy/);
});

test("a host is put in order after the issuer that it asks for keys", () => {
  const after = (name: string) =>
    Object.fromEntries(render(name).hosts.map((host) => [host.host, host.after]));
  assert.deepEqual(after("baseline"), { server: [] });
  assert.deepEqual(after("jwt"), { client: [], server: ["client"] });
  assert.deepEqual(after("gateway"), { client: [], gateway: ["client"], server: [] });
});

test("only the gateway's address may reach the service behind it", () => {
  const filters = render("gateway").hosts.map((host) => host.firewall?.text);
  assert.equal(filters[0], undefined);
  assert.equal(filters[1], undefined);
  assert.match(filters[2] ?? "", /tcp dport 8080 ip saddr { 198\.18\.0\.20 } counter accept/);
  assert.equal(probe(render("gateway").deployment, "direct-to-service").expect.outcome, "refused");
});

test("no token and no key is rendered", () => {
  for (const name of Object.keys(catalogue)) {
    assert.doesNotMatch(JSON.stringify(render(name)), /eyJ|PRIVATE KEY/);
  }
});
