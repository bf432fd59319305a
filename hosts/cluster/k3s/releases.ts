/** Which releases go together, and which images they run. Pure. */
import type { Artifacts } from "../../../contracts/artifacts.ts";
import { requireTested as requireTestedTuple } from "../../../contracts/compatibility.ts";

/**
 * Calico's operator has a version of its own. Of other releases of Calico it is not known here, and
 * so its image is not asked for.
 */
const calicoOperators: Readonly<Record<string, string>> = {
  "3.26.4": "1.30.9",
  "3.27.0": "1.32.3",
  "3.27.2": "1.32.5",
  "3.27.3": "1.32.7",
};

/**
 * Refuses releases that are not tested together, unless the document allows that.
 *
 * @throws Failure `document` naming every pair
 */
export function requireTested({ k3s, calico, istio, allowUntested }: Artifacts): void {
  const tuple = { kubernetes: k3s, calico, ...(istio === undefined ? {} : { istio }) };
  requireTestedTuple(tuple, { allowUntested, where: "in the artifacts document" });
}

/** Images that must have come with an archive, since no registry is asked. */
export function requiredImages(artifacts: Artifacts, withMesh: boolean): string[] {
  if (artifacts.imagesFrom !== "archives") return [];
  const { calico, istio } = artifacts;
  const operator = calicoOperators[calico];
  const parts = ["apiserver", "cni", "kube-controllers", "node", "typha"];
  return [
    ...(operator === undefined ? [] : [`quay.io/tigera/operator:v${operator}`]),
    ...parts.map((part) => `docker.io/calico/${part}:v${calico}`),
    ...(istio === undefined || !withMesh
      ? []
      : ["pilot", "proxyv2"].map((part) => `docker.io/istio/${part}:${istio}`)),
  ];
}
