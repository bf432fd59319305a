/** Neighbouring rungs of the ladder differ in what the upper one is named after, and in nothing else. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { topologyNamed } from "../../../topologies/catalogue.ts";
import { renderNative } from "../../../topologies/native.ts";
import { readParameters } from "../../../topologies/parameters.ts";
import { assertGolden } from "../../support/golden.ts";
import { podRendering } from "../../support/pods.ts";
import { differences, nativeSettings, podSettings } from "../../support/rung-difference.ts";
import { exampleTestbed } from "./example.ts";

const native = (name: string) => {
  const topology = topologyNamed(name);
  const place = { testbed: exampleTestbed, scheduling: "rr", programs: "/bin" } as const;
  return nativeSettings(renderNative(topology, readParameters(topology, {}), place));
};
const pods = (name: string) => podSettings(podRendering(name, "k3s"));

const steps = [
  { runtime: "native", title: "R0 → R2", from: "baseline", to: "sidecar-tcp" },
  { runtime: "native", title: "R2 → R3", from: "sidecar-tcp", to: "sidecar-http" },
  { runtime: "native", title: "R3 → R4", from: "sidecar-http", to: "mtls-only" },
  { runtime: "native", title: "R4 → R5", from: "mtls-only", to: "mtls-h1" },
  { runtime: "native", title: "R3 → policy alone", from: "sidecar-http", to: "sidecar-policy" },
  { runtime: "k3s", title: "R0 → R1", from: "baseline-host-network", to: "baseline" },
  { runtime: "k3s", title: "R1 → R2", from: "baseline", to: "sidecar-tcp" },
  { runtime: "k3s", title: "R2 → R3", from: "sidecar-tcp", to: "sidecar-http" },
  { runtime: "k3s", title: "R3 → R4", from: "sidecar-http", to: "mtls-only" },
  { runtime: "k3s", title: "R4 → R5", from: "mtls-only", to: "mtls-h1" },
  { runtime: "k3s", title: "R3 → policy alone", from: "sidecar-http", to: "sidecar-policy" },
] as const;

const between = ({ runtime, from, to }: (typeof steps)[number]) => {
  const settings = runtime === "native" ? native : pods;
  return differences(settings(from), settings(to));
};

test("the differences between neighbouring rungs are the reviewed ones", () => {
  const text = steps
    .map((step) => {
      const { runtime, title, from, to } = step;
      return [`${runtime}, ${title}: ${from} → ${to}`, ...between(step), ""].join("\n");
    })
    .join("\n");
  assertGolden(path.join(import.meta.dirname, "golden", "ladder.txt"), text);
});

/** What each step is the cost of, in the words of Istio: the same in both runtimes. */
const declared = [
  {
    titles: ["R2 → R3"],
    lines: [
      "~ DestinationRule echo: spec.trafficPolicy.connectionPool.tcp.maxConnections: (absent) → 32",
      "~ DestinationRule echo: spec.trafficPolicy.connectionPool.http.h2UpgradePolicy: " +
        "(absent) → DO_NOT_UPGRADE",
    ],
    also: /^~ Service(Entry)? echo: spec\.ports\.0\.(name: tcp → http|protocol: TCP → HTTP)$/,
  },
  {
    titles: ["R3 → R4"],
    lines: [
      "~ PeerAuthentication default: spec.mtls.mode: DISABLE → STRICT",
      "~ DestinationRule echo: spec.trafficPolicy.tls.mode: DISABLE → ISTIO_MUTUAL",
      "~ leg client-sidecar to server-sidecar: tls: none → mutual",
    ],
    // The service believes the certificate that its sidecar tells it of.
    also: /(-auth: none → peer|-auth=none → -auth=peer)$/,
  },
  { titles: ["R4 → R5"], lines: ["+ AuthorizationPolicy callers"], also: undefined },
  { titles: ["R3 → policy alone"], lines: ["+ AuthorizationPolicy requests"], also: undefined },
] as const;

for (const { titles, lines, also } of declared) {
  for (const step of steps.filter(({ title }) => (titles as readonly string[]).includes(title))) {
    test(`${step.title} in ${step.runtime} changes what it is named after alone`, () => {
      const found = between(step);
      const others = found.filter((line) => !(lines as readonly string[]).includes(line));
      assert.equal(found.length - others.length, lines.length, found.join("\n"));
      if (also === undefined) assert.deepEqual(others, []);
      else {
        assert.ok(others.length > 0);
        for (const line of others) assert.match(line, also);
      }
    });
  }
}

test("whatever else differs between two rungs is found", () => {
  const [from, to] = [topologyNamed("mtls-only"), topologyNamed("mtls-h1")];
  const place = { testbed: exampleTestbed, scheduling: "rr", programs: "/bin" } as const;
  const settings = (topology: typeof from, given: object) =>
    nativeSettings(renderNative(topology, readParameters(topology, { ...given }), place));
  const found = differences(settings(from, {}), settings(to, { requestsPerConnection: 10 }));
  assert.deepEqual(found.sort(), [
    "+ AuthorizationPolicy callers",
    "~ DestinationRule echo: " +
      "spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection: (absent) → 10",
  ]);
  assert.deepEqual(differences(settings(to, {}), settings(to, { sessionResumption: 0 })), [
    "+ EnvoyFilter full-handshakes",
  ]);
  assert.deepEqual(differences(settings(to, {}), settings(to, { bodyBytes: 257 })), [
    "~ server: ztbench-service.service: ExecStart -body-bytes: 256 → 257",
  ]);
});

test("the document of the layers shows the differences that are rendered", () => {
  const file = new URL("../../../docs/explanation/layers.md", import.meta.url);
  const text = readFileSync(file, "utf8");
  for (const step of steps.filter(({ title }) => /R[345]|policy/.test(title))) {
    if (step.runtime !== "native") continue;
    assert.ok(
      text.includes(between(step).join("\n")),
      `${step.title}: ${between(step).join("\n")}`,
    );
  }
});
