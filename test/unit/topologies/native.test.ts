import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { deploymentSchema, type Deployment } from "../../../contracts/deployment.ts";
import type { HostPayload } from "../../../hosts/payload.ts";
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
  const parts = hosts.flatMap((payload) => [
    section(`${payload.host}: payload`, JSON.stringify(outlineOf(payload), null, 2)),
    ...(payload.steps ?? []).map((step, index) =>
      section(
        `${payload.host}: step ${index + 1}`,
        [step.make, "--- undo", step.undo, "--- left", step.left].join("\n"),
      ),
    ),
    ...contentOf(payload),
  ]);
  return [...parts, section("deployment", JSON.stringify(deployment, null, 2))].join("");
}

const section = (title: string, text: string) => `===== ${title}\n${text.trimEnd()}\n\n`;

const outlineOf = ({ root, name, after, receives, directories }: HostPayload) => ({
  root,
  name,
  after,
  receives,
  directories,
});

function contentOf({ host, files, units, firewall }: HostPayload): string[] {
  return [
    ...files.map((file) => section(`${host}: ${file.path} (${file.mode})`, file.content)),
    ...units.map((unit) => section(`${host}: ${unit.name} on ${unit.listens.join()}`, unit.text)),
    ...(firewall === undefined ? [] : [section(`${host}: table ${firewall.table}`, firewall.text)]),
  ];
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
  assert.match(service, /^Slice=ztbench\.slice$/m);
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
    assert.doesNotMatch(text, /CPUAffinity|Slice|GOMAXPROCS|--concurrency|CPUScheduling/);
  }
});

test("the issuer is pinned to the system's CPUs and never runs ahead of what is measured", () => {
  const issuer = unitText("jwt", "ztbench-issuer.service");
  assert.match(issuer, /^CPUAffinity=0$/m);
  assert.doesNotMatch(issuer, /CPUSchedulingPolicy|Slice/);
});

test("a host is put in order after the issuer that it asks for keys", () => {
  const after = (name: string) =>
    Object.fromEntries(render(name).hosts.map((host) => [host.host, host.after]));
  assert.deepEqual(after("baseline"), { server: [] });
  assert.deepEqual(after("jwt"), { client: [], server: ["client-payload"] });
  assert.deepEqual(after("gateway"), { client: [], gateway: ["client-payload"], server: [] });
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

test("wire facts of an encrypted leg name both ends and pin version, group and protocol", () => {
  const { legs } = render("mtls-h2").deployment;
  assert.deepEqual(
    legs.map(({ wire }) => wire),
    [
      {},
      {
        alpn: "h2",
        caller: "spiffe://cluster.local/ns/ztbench/sa/client",
        cipher: "TLS_AES_128_GCM_SHA256",
        group: "X25519",
        keyType: "rsa-2048",
        peer: "spiffe://cluster.local/ns/ztbench/sa/service",
        version: "TLSv1.3",
      },
      {},
    ],
  );
  assert.equal(render("mtls-h1").deployment.legs[1]?.wire["alpn"], "none");
});

test("sidecars capture the service alone, never all traffic", () => {
  const steps = render("mtls-h2").hosts.flatMap((payload) => payload.steps ?? []);
  const captures = steps.flatMap(({ make }) => /istio-iptables .*/.exec(make)?.[0] ?? []);
  assert.equal(captures.length, 2);
  assert.match(captures[0] ?? "", / -i 198\.18\.64\.1\/32 -b '' -x '' /);
  assert.match(captures[1] ?? "", / -i '' -b 8080 -x '' /);
  assert.doesNotMatch(captures.join("\n"), /\*/);
});

test("Istio is told only what version 1.20 understands, and one version of HTTP", () => {
  for (const [name, port] of [
    ["mtls-h1", "http"],
    ["mtls-h2", "http2"],
  ] as const) {
    const files = render(name).hosts.flatMap((payload) => payload.files);
    const objects = files.filter((file) => file.path.endsWith(".yaml"));
    const text = objects.map((file) => file.content).join("---\n");
    const versions = [...text.matchAll(/"apiVersion": "(.*)"/g)].map(([, version]) => version);
    assert.equal(versions.length, 5);
    for (const version of versions) assert.match(version ?? "", /\/v1(beta|alpha)\d$/);
    assert.match(text, new RegExp(`"name": "${port}",`));
    assert.match(text, /"cluster\.local\/ns\/ztbench\/sa\/client"/);
    assert.match(text, /"mode": "STRICT"/);
  }
});

test("of a mesh, sidecars and service count as cost, the control plane does not", () => {
  const units = render("mtls-h1").deployment.units;
  assert.deepEqual(
    units.map((unit) => [unit.program, unit.kind, unit.dataPlane]),
    [
      ["ztistiod", "control", false],
      ["pilot-agent", "proxy", true],
      ["ztecho", "service", true],
      ["pilot-agent", "proxy", true],
    ],
  );
});
