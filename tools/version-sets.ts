/**
 * The sets of versions that a cluster can be made of, and which set a choice of versions is. Who
 * chooses: an artifacts document for k3s on metal; a lab has what can be built here. Pure.
 */
import type { ReleaseTuple } from "../contracts/compatibility.ts";
import { Failure } from "../contracts/failure.ts";
import { type VersionSet, versionSets } from "./version-entry.ts";
import { versions } from "./versions.ts";

/** Versions of one set, without a leading v. */
export type ClusterVersions = ReleaseTuple & {
  readonly set: VersionSet;
  /** Of the gateway; sidecars have the Envoy of their mesh. */
  readonly envoy: string;
};

/** The lab's cluster has kube-router in place of Calico, so it has none. */
const clusters: Readonly<Record<VersionSet, ClusterVersions>> = {
  lab: {
    set: "lab",
    kubernetes: versions.kubernetes.version,
    istio: versions.istio.release,
    envoy: versions.envoy.version,
  },
  era: {
    set: "era",
    kubernetes: versions["k3s-era"].version,
    calico: versions["calico-era"].version,
    istio: versions["istio-era"].version,
    envoy: versions["envoy-era"].version,
  },
  current: {
    set: "current",
    kubernetes: versions["k3s-current"].version,
    calico: versions["calico-current"].version,
    istio: versions["istio-current"].version,
    envoy: versions["envoy-current"].version,
  },
};

/** The versions of a set. */
export function clusterVersions(set: VersionSet): ClusterVersions {
  return clusters[set];
}

/**
 * The set that a choice of versions is, or undefined if it is none: then results are of the
 * chooser's own set and compare with no other. A cluster without a mesh may be of any set.
 */
export function setOf({ kubernetes, calico, istio }: ReleaseTuple): VersionSet | undefined {
  return versionSets.find((set) => {
    const wanted = clusters[set];
    const isMesh = istio === undefined || istio === wanted.istio;
    return kubernetes === wanted.kubernetes && calico === wanted.calico && isMesh;
  });
}

/**
 * The set of that name for a testbed of that class.
 *
 * @throws Failure `document` for a name that is no set, and for a set that the class cannot have
 */
export function chooseSet(name: string, testbedClass: "lab" | "metal"): VersionSet {
  const allowed = versionSets.filter((set) => (set === "lab") === (testbedClass === "lab"));
  const chosen = versionSets.find((set) => set === name);
  if (chosen === undefined) {
    throw new Failure("document", `version set: ${name}, allowed are ${versionSets.join(", ")}`);
  }
  if (allowed.includes(chosen)) return chosen;
  const why =
    testbedClass === "lab"
      ? "official releases cannot be had there"
      : "what was built for labs is no release";
  throw new Failure(
    "document",
    `version set: ${name} on a ${testbedClass} testbed, ${why}, allowed are ${allowed.join(", ")}`,
  );
}
