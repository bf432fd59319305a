/** Small valid documents for the tests of the load side. */
import { planSchema, type Plan } from "../../../contracts/plan.ts";
import { testbedSchema, type Testbed } from "../../../contracts/testbed.ts";
import type { Deployment } from "../../../contracts/deployment.ts";

/** A plan with these treatments, the first one being the baseline. */
export function examplePlan(labels: readonly string[]): Plan {
  return planSchema.parse({
    schema: "ztbench/plan/1",
    name: "example",
    purpose: "tests",
    seed: 1,
    blocks: 1,
    baseline: labels[0],
    treatments: labels.map((label) => ({ label, topology: label })),
    load: { rateQps: 1000, warmupSeconds: 1, durationSeconds: 2, connections: 32 },
    equivalenceMargin: 0.05,
  });
}

const cpus = { system: "0", irq: "0", load: "1", proxy: "1", service: "1" };

/** Three hosts at addresses of the range for benchmarks. */
export function exampleTestbed(): Testbed {
  const roles = ["client", "gateway", "server"] as const;
  return testbedSchema.parse({
    schema: "ztbench/testbed/1",
    name: "example",
    class: "lab",
    instance: "0123456789abcdef",
    hosts: roles.map((role, index) => ({
      name: role,
      role,
      managementAddress: `198.18.1.${10 + index}`,
      identityFile: "/keys/id",
      hostKey: `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${role}`,
      dataAddress: `198.18.0.${10 + index}`,
      nic: "data0",
      cpus,
    })),
    dataNetwork: "198.18.0.0/24",
    scheduling: "rr",
  });
}

/** One echo service on the server, plain HTTP/1.1. */
export function exampleDeployment(changes: Partial<Deployment> = {}): Deployment {
  return {
    schema: "ztbench/deployment/1",
    topology: "baseline",
    runtime: "native",
    testbed: "example",
    testbedClass: "lab",
    instance: "0123456789abcdef",
    parameters: {},
    entry: { host: "client", url: "http://198.18.0.12:8080/", http: "1.1", headers: {} },
    legs: [{ from: "load", to: "service", http: "1.1", tls: "none", wire: {} }],
    units: [
      {
        name: "ztbench-service.service",
        host: "server",
        kind: "service",
        program: "ztecho",
        cpus: "1",
        dataPlane: true,
      },
    ],
    admin: [],
    probes: [
      {
        id: "answers",
        kind: "positive",
        shows: "the path answers",
        host: "client",
        url: "http://198.18.0.12:8080/",
        http: "1.1",
        headers: {},
        timeoutSeconds: 1,
        expect: { outcome: "status", status: 200 },
      },
    ],
    scheduling: "rr",
    configurationDigest: "0".repeat(64),
    ...changes,
  };
}
