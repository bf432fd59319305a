/** The program of every topology stack: reads what is wanted, and has the runtime carry it out. */
import * as pulumi from "@pulumi/pulumi";
import { z } from "zod";
import { type Deployment, type Runtime, runtimeSchema } from "../contracts/deployment.ts";
import { Failure } from "../contracts/failure.ts";
import type { LeaseRequest } from "../hosts/lease.ts";
import { programDirectory } from "../hosts/programs.ts";
import { topologyNamed } from "../topologies/catalogue.ts";
import type { Topology } from "../topologies/model.ts";
import { renderNative, rootsOf } from "../topologies/native.ts";
import { readParameters } from "../topologies/parameters.ts";
import { configuredOwner } from "./owner.ts";
import { awaitAnswers, placePayloads, takeLeases } from "./payloads.ts";
import { podsStack } from "./pods.ts";
import type { TopologyRequest } from "./request.ts";
import { type DeployedTestbed, deployedTestbed } from "./testbed.ts";

/**
 * Deploys the topology that the stack is named after.
 *
 * @returns output `deployment`, there once the path answers correctly
 * @throws Failure `usage` or `testbed`
 */
export async function topologyStack(name: string): Promise<Record<string, unknown>> {
  const topology = topologyNamed(name);
  const config = new pulumi.Config("ztbench");
  const runtime = chosenRuntime(config, topology);
  const parameters = readParameters(topology, givenParameters(config), runtime);
  const lease = leaseRequest(config, name);
  const deployed = await deployedTestbed();
  const request: TopologyRequest = { topology, parameters, lease, deployed };
  const deployment = runtime === "native" ? nativeStack(request) : await podsStack(request);
  return { deployment };
}

function nativeStack(request: TopologyRequest): pulumi.Output<Deployment> {
  const { topology, parameters, lease, deployed } = request;
  const { testbed } = deployed;
  const { hosts: payloads, deployment } = renderNative(topology, parameters, {
    testbed,
    scheduling: grantedScheduling(deployed),
    programs: programDirectory,
  });
  const leases = takeLeases(testbed, lease, rootsOf(topology));
  const placed = placePayloads(testbed, payloads, { dependsOn: leases });
  const ready = awaitAnswers(testbed, deployment, placed);
  return pulumi.all(ready.map(({ id }) => id)).apply((): Deployment => deployment);
}

function chosenRuntime(config: pulumi.Config, { name, runtimes }: Topology): Runtime {
  const given = config.get("runtime") ?? "native";
  const runtime = runtimeSchema.safeParse(given);
  if (runtime.success && runtimes.includes(runtime.data)) return runtime.data;
  const allowed = `allowed for topology ${name} are ${runtimes.join(", ")}`;
  throw new Failure("usage", `config ztbench:runtime: not usable, ${given}, ${allowed}`, {
    hint: `pulumi config set ztbench:runtime ${runtimes[0] ?? "native"} -s ${name}`,
  });
}

function givenParameters(config: pulumi.Config): Record<string, unknown> {
  const given = z.record(z.string(), z.unknown()).safeParse(config.getObject("parameters") ?? {});
  if (given.success) return given.data;
  throw new Failure("usage", "config ztbench:parameters: not usable, an object is allowed", {
    hint: "pulumi config set --path 'ztbench:parameters.bodyBytes' 256",
  });
}

function leaseRequest(config: pulumi.Config, stack: string): LeaseRequest {
  const owner = configuredOwner(config, stack);
  const campaignToken = process.env["ZTBENCH_CAMPAIGN"];
  return { owner, stack, ...(campaignToken === undefined ? {} : { campaignToken }) };
}

/** Realtime only where the testbed asks for it and every host allows it. */
function grantedScheduling({ testbed, facts }: DeployedTestbed): "rr" | "other" {
  const allowed = testbed.hosts.every(({ name }) => facts[name]?.["sched-rr"] === "allowed");
  return testbed.scheduling === "rr" && allowed ? "rr" : "other";
}
