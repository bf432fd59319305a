/** Pods for the tests of a cluster: one that serves, one that may ask it and one that may not. */
import { imageOf, readImageIndex } from "../../tools/image-index.ts";

/** Name of the image of our own programs, from the images of the checkout at `root`. */
export async function serviceImage(root: string): Promise<string> {
  const { name, tag } = imageOf(await readImageIndex(root), "service");
  return `${name}:${tag}`;
}

const container = (image: string, cpu?: string) => {
  const amounts = cpu === undefined ? undefined : { cpu, memory: "64Mi" };
  return {
    name: "main",
    image,
    imagePullPolicy: "Never",
    args: ["-listen", "0.0.0.0:8080"],
    ports: [{ containerPort: 8080 }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    ...(amounts === undefined ? {} : { resources: { requests: amounts, limits: amounts } }),
  };
};

const pod = (name: string, role: string, image: string, cpu?: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: name } },
  spec: {
    nodeSelector: { "ztbench/role": role },
    terminationGracePeriodSeconds: 0,
    containers: [container(image, cpu)],
  },
});

/** `echo` with a whole CPU on the server, `friend` on the gateway, `stranger` on the client. */
export function workload(image: string): string {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "echo" },
    spec: { selector: { app: "echo" }, ports: [{ port: 8080, targetPort: 8080 }] },
  };
  const items = [
    pod("echo", "server", image, "1"),
    pod("friend", "gateway", image),
    pod("stranger", "client", image),
    service,
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** One more that wants the only CPU that a node of two has to give. */
export function greedyPod(image: string): string {
  return JSON.stringify(pod("greedy", "server", image, "1"));
}

/** Lets `friend` alone reach `echo`. */
export const friendsOnly = JSON.stringify({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "friends-only" },
  spec: {
    podSelector: { matchLabels: { app: "echo" } },
    policyTypes: ["Ingress"],
    ingress: [
      {
        from: [{ podSelector: { matchLabels: { app: "friend" } } }],
        ports: [{ port: 8080, protocol: "TCP" }],
      },
    ],
  },
});
