/** Every topology on every kind of cluster, by a provider that writes files instead of objects. */
import path from "node:path";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { objectResource, podResource } from "../../../stacks/kubernetes-objects.ts";
import { kinds, podRendering, renderings } from "../../support/pods.ts";

const directory = new pulumi.Config().require("directory");

for (const kind of kinds) {
  for (const { name } of renderings) {
    const target = path.join(directory, `${name}-${kind}`);
    const provider = new kubernetes.Provider(target, { renderYamlToDirectory: target });
    // A type of its own, since objects of different topologies have the same names.
    const parent = new pulumi.ComponentResource(`ztbench:manifests:${name}-${kind}`, "all");
    const { objects, workloads } = podRendering(name, kind);
    for (const object of objects) objectResource(object, { provider, parent });
    for (const { object } of workloads) podResource(object, { provider, parent });
  }
}
