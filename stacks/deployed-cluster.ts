/** The cluster that the cluster stack has put on the hosts, and the images that pods name. */
import path from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import type { Testbed } from "../contracts/testbed.ts";
import { imageOf, imageReference, readImageIndex } from "../tools/image-index.ts";
import type { PodImages } from "../topologies/pods/place.ts";
import { stackOutputs } from "./testbed.ts";

/** The stack that puts a cluster on the hosts, as other stacks name it. */
const clusterStack = "organization/ztbench/cluster";

const root = path.resolve(import.meta.dirname, "..");

const outputsSchema = z.object({
  kubeconfig: z.string().min(1),
  clusterIdentifier: z.string().min(1),
  versions: z.record(z.string(), z.string()),
  /** Where pods find Istio's control plane, for clusters without a name server. */
  controlAddress: z.ipv4().optional(),
});

export type DeployedCluster = Omit<z.infer<typeof outputsSchema>, "kubeconfig"> & {
  readonly kubeconfig: pulumi.Output<string>;
  readonly kind: "k3s" | "kubernetes";
};

/**
 * The cluster of a testbed.
 *
 * @throws Failure `testbed` if the testbed has none, or it is not up
 */
export async function deployedCluster(testbed: Testbed): Promise<DeployedCluster> {
  const { clusterKind: kind } = testbed;
  if (kind === "none") {
    throw new Failure(
      "testbed",
      `runtime k3s: testbed ${testbed.name} has no cluster, clusterKind none, ` +
        "kubernetes or k3s expected",
      { hint: "./ztbench lab up --kubernetes, or set clusterKind in the testbed document" },
    );
  }
  const found = await stackOutputs(clusterStack).catch((cause: unknown) => {
    throw notUp("there is no such stack", cause);
  });
  const outputs = outputsSchema.safeParse(found);
  if (!outputs.success) throw notUp("the stack has not all of its outputs", outputs.error);
  const { kubeconfig, ...rest } = outputs.data;
  return { ...rest, kind, kubeconfig: pulumi.secret(kubeconfig) };
}

function notUp(problem: string, cause: unknown): Failure {
  return new Failure("testbed", `cluster: not up, ${problem}`, {
    cause,
    hint: "pulumi up -s cluster",
  });
}

const reference = z
  .string()
  .regex(/^[^@\s]+@sha256:[0-9a-f]{64}$/, "must name an image by its digest, NAME@sha256:...");
const imagesSchema = z.strictObject({ service: reference, envoy: reference, pause: reference });

/**
 * The images of pods: those that the stack's configuration names, else those made here.
 *
 * @throws Failure `usage` for names without a digest, `testbed` if none were made
 */
export async function podImages(config: pulumi.Config): Promise<PodImages> {
  const given = config.getObject<unknown>("images");
  if (given !== undefined) {
    const images = imagesSchema.safeParse(given);
    if (images.success) return images.data;
    throw new Failure(
      "usage",
      `config ztbench:images: not usable, ${z.prettifyError(images.error)}`,
    );
  }
  const index = await readImageIndex(root);
  const of = (id: "service" | "envoy" | "pause") => imageReference(imageOf(index, id));
  return { service: of("service"), envoy: of("envoy"), pause: of("pause") };
}
