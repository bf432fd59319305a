/**
 * What Calico's operator is told: one pool of addresses, routed between the hosts without
 * encapsulation. Pure. Rendered only: neither operator nor schema was there to try it on.
 */
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { Failure } from "../../contracts/failure.ts";
import type { Testbed } from "../../contracts/testbed.ts";

export type OperatorObject = {
  readonly apiVersion: "operator.tigera.io/v1";
  readonly kind: "Installation" | "APIServer";
  readonly metadata: { readonly name: "default" };
  readonly spec: object;
};

/** The object that each part of Calico is reported by; in the order in which they get ready. */
export const calicoStatuses = ["calico", "apiserver"] as const;

/** Definitions that must be there before the objects can be. */
export const operatorDefinitions = [
  "installations.operator.tigera.io",
  "apiservers.operator.tigera.io",
  "tigerastatuses.operator.tigera.io",
] as const;

/** The one Installation and the server of `projectcalico.org/v3`. */
export function calicoObjects(testbed: Testbed): readonly OperatorObject[] {
  const { cluster, hardware, hosts } = testbed;
  const mtu = cluster?.mtu ?? hardware?.mtu;
  if (cluster === undefined || mtu === undefined) {
    throw new Error(`testbed ${testbed.name} has no MTU for Calico`);
  }
  const common = { apiVersion: "operator.tigera.io/v1", metadata: { name: "default" } } as const;
  return [
    {
      ...common,
      kind: "Installation",
      spec: {
        variant: "Calico",
        controlPlaneReplicas: 1,
        // Drivers that would bring images and daemons of their own.
        flexVolumePath: "None",
        kubeletVolumePluginPath: "None",
        calicoNetwork: {
          linuxDataplane: "Iptables",
          bgp: "Enabled",
          // The smallest one of all interfaces would be taken otherwise.
          mtu,
          hostPorts: "Disabled",
          containerIPForwarding: "Enabled",
          nodeAddressAutodetectionV4: { interface: interfacesOf(hosts.map(({ nic }) => nic)) },
          ipPools: [
            {
              cidr: cluster.podNetwork,
              encapsulation: "None",
              natOutgoing: "Enabled",
              blockSize: 26,
              nodeSelector: "all()",
            },
          ],
        },
      },
    },
    { ...common, kind: "APIServer", spec: {} },
  ];
}

/** A regular expression that matches these interfaces and no other. */
function interfacesOf(names: readonly string[]): string {
  const unique = [...new Set(names)].map((name) => name.replaceAll(".", "\\."));
  return `^(${unique.join("|")})$`;
}

const manifestSchema = z.looseObject({
  apiVersion: z.string().min(1),
  kind: z.string().min(1),
  metadata: z.looseObject({ name: z.string().min(1) }),
});
export type ManifestObject = z.infer<typeof manifestSchema>;

/** What other objects of a manifest need. */
const firstKinds = ["Namespace", "CustomResourceDefinition"];

export type OperatorManifest = {
  /** Namespaces and definitions: they come first. */
  readonly first: readonly ManifestObject[];
  readonly rest: readonly ManifestObject[];
};

/**
 * Reads the operator's manifest.
 *
 * @param file its name, for messages
 * @throws Failure `document` for one that is not a manifest, or is not the operator's
 */
export function readOperatorManifest(text: string, file: string): OperatorManifest {
  const objects = parseAllDocuments(text).flatMap((document): ManifestObject[] => {
    if (document.errors.length > 0) throw notOperator(file, "not YAML");
    const value: unknown = document.toJS();
    // Between separators there may be comments only.
    if (value === null) return [];
    const parsed = manifestSchema.safeParse(value);
    if (parsed.success) return [parsed.data];
    throw notOperator(file, "not a manifest of Kubernetes");
  });
  const operators = objects.filter(({ kind }) => kind === "Deployment");
  if (operators.length !== 1) throw notOperator(file, `${operators.length} Deployments`);
  const isFirst = ({ kind }: ManifestObject) => firstKinds.includes(kind);
  return {
    first: objects.filter(isFirst),
    rest: objects.filter((object) => !isFirst(object)),
  };
}

function notOperator(file: string, found: string): Failure {
  return new Failure(
    "document",
    `${file}: not the manifest of Calico's operator, found ${found}, one Deployment expected`,
    { hint: "take tigera-operator.yaml of the release that the artifacts document names" },
  );
}
