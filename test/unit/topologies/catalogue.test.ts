import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import { catalogue, topologyNamed } from "../../../topologies/catalogue.ts";
import { nodeOf } from "../../../topologies/model.ts";
import { readParameters } from "../../../topologies/parameters.ts";

for (const [name, topology] of Object.entries(catalogue)) {
  test(`${name} is well formed: its legs lead from load to a service, its checks name nodes`, () => {
    assert.equal(topology.name, name);
    const ids = topology.nodes.map((node) => node.id);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(nodeOf(topology, topology.legs[0].from).kind, "load");
    assert.equal(nodeOf(topology, topology.legs.at(-1)?.to ?? "").kind, "service");
    topology.legs.slice(1).forEach((leg, index) => {
      assert.equal(leg.from, topology.legs[index]?.to);
    });
    for (const check of topology.checks) {
      nodeOf(topology, check.at);
      if (check.kind === "jwt") assert.equal(nodeOf(topology, check.issuer).kind, "issuer");
      if (check.kind === "header") nodeOf(topology, check.setBy);
      if (check.kind === "network") check.allows.forEach((id) => nodeOf(topology, id));
    }
  });
}

test("an unknown topology is refused, naming the known ones", () => {
  for (const name of ["mtls-h3", "toString"]) {
    assert.throws(
      () => topologyNamed(name),
      (error) =>
        error instanceof Failure &&
        error.code === "usage" &&
        error.message ===
          `topology ${name}: not known, known are baseline, jwt, gateway, sidecar-tcp, ` +
            "sidecar-http, sidecar-policy, mtls-only, mtls-h1, mtls-h2, null",
    );
  }
});

test("parameters that are not given have their defaults", () => {
  const parameters = readParameters(topologyNamed("jwt"), { tokens: 7 });
  assert.deepEqual(parameters, {
    bodyBytes: 256,
    tokens: 7,
    tokenBytes: 680,
    tokenLifetimeSeconds: 86_400,
    meshConnections: 32,
    requestsPerConnection: 0,
    certificateSeconds: 86_400,
    sessionResumption: 1,
    hostNetwork: 0,
  });
});

test("an unknown parameter is refused, naming the known ones", () => {
  assert.throws(() => readParameters(topologyNamed("baseline"), { tokens: 5 }), {
    name: "Failure",
    message:
      "parameter tokens: not known to topology baseline in runtime native, known are bodyBytes",
  });
});

test("the network of pods can be left out only where there are pods", () => {
  const given = { hostNetwork: 1 };
  const baseline = topologyNamed("baseline");
  assert.equal(readParameters(baseline, given, "k3s").hostNetwork, 1);
  assert.throws(() => readParameters(baseline, given), {
    message:
      "parameter hostNetwork: not known to topology baseline in runtime native, " +
      "known are bodyBytes",
  });
});

test("parameters of a wrong type or out of range are all told at once", () => {
  const given = { bodyBytes: -1, tokens: "many", tokenBytes: 1.5 };
  assert.throws(
    () => readParameters(topologyNamed("jwt"), given),
    (error) => error instanceof Failure && error.message.split("\n").length === 3,
  );
});
