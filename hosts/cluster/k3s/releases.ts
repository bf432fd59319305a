/** Which releases go together, and which images they run. Pure. */
import type { Artifacts } from "../../../contracts/artifacts.ts";
import { Failure } from "../../../contracts/failure.ts";

type Release = {
  /** Minor versions of Kubernetes that its makers test it on. */
  readonly kubernetes: readonly string[];
};

/** By version; the operator has a version of its own. */
const calicoReleases: Readonly<Record<string, Release & { readonly operator: string }>> = {
  "3.26.4": { operator: "1.30.9", kubernetes: ["1.24", "1.25", "1.26", "1.27", "1.28"] },
  "3.27.0": { operator: "1.32.3", kubernetes: ["1.27", "1.28", "1.29"] },
  "3.27.2": { operator: "1.32.5", kubernetes: ["1.27", "1.28", "1.29"] },
  "3.27.3": { operator: "1.32.7", kubernetes: ["1.27", "1.28", "1.29"] },
};

/** By minor version. */
const istioReleases: Readonly<Record<string, Release>> = {
  "1.20": { kubernetes: ["1.25", "1.26", "1.27", "1.28", "1.29"] },
};

const minorOf = (version: string) => version.split(".").slice(0, 2).join(".");

/**
 * Refuses releases that are not tested together, unless the document allows that.
 *
 * @throws Failure `document` naming every pair
 */
export function requireTested(artifacts: Artifacts): void {
  if (artifacts.allowUntested) return;
  const kubernetes = minorOf(artifacts.k3s);
  const { calico, istio } = artifacts;
  const checks = [
    { name: "calico", version: calico, release: calicoReleases[calico], known: calicoReleases },
    ...(istio === undefined
      ? []
      : [
          {
            name: "istio",
            version: istio,
            release: istioReleases[minorOf(istio)],
            known: istioReleases,
          },
        ]),
  ];
  const problems = checks.flatMap(({ name, version, release, known }) => {
    const tested = release?.kubernetes.join(", ") ?? `releases ${Object.keys(known).join(", ")}`;
    return release?.kubernetes.includes(kubernetes) === true
      ? []
      : [`${name} ${version}: not tested with Kubernetes ${kubernetes}, allowed are ${tested}`];
  });
  if (problems.length === 0) return;
  throw new Failure("document", problems.join("\n"), {
    hint: "choose another release, or set allowUntested: true in the artifacts document",
  });
}

/** Images that must have come with an archive, since no registry is asked. */
export function requiredImages(artifacts: Artifacts, withMesh: boolean): string[] {
  if (artifacts.imagesFrom !== "archives") return [];
  const { calico, istio } = artifacts;
  const operator = calicoReleases[calico]?.operator;
  const parts = ["apiserver", "cni", "kube-controllers", "node", "typha"];
  return [
    ...(operator === undefined ? [] : [`quay.io/tigera/operator:v${operator}`]),
    ...parts.map((part) => `docker.io/calico/${part}:v${calico}`),
    ...(istio === undefined || !withMesh
      ? []
      : ["pilot", "proxyv2"].map((part) => `docker.io/istio/${part}:${istio}`)),
  ];
}
