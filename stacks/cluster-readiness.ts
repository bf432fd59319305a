/**
 * Waits until what was installed into a cluster is usable, rather than merely created. Each wait
 * has a deadline and says what the last answer was.
 */
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";
import type { ApiAnswer, KubernetesApi } from "./kubernetes-api.ts";

export type Patience = {
  /** Longest wait, ms. */
  readonly waitMs: number;
  /** Between two looks, ms. */
  readonly pollMs: number;
};

/** Images may have to be pulled on all hosts. */
export const defaultPatience: Patience = { waitMs: 240_000, pollMs: 250 };

const conditionsSchema = z.object({
  status: z.object({
    conditions: z.array(
      z.object({ type: z.string(), status: z.string(), message: z.string().optional() }),
    ),
  }),
});
const messageSchema = z.object({ message: z.string() });

/** A look that found what it was after, or the reason why not. */
type Look<T> = { readonly found: T } | { readonly problem: string };

/**
 * Waits until definitions of objects are served.
 *
 * @param names such as `peerauthentications.security.istio.io`
 * @throws Failure `testbed` naming the first that is not
 */
export async function awaitDefinitions(
  api: KubernetesApi,
  names: readonly string[],
  patience: Patience,
): Promise<void> {
  for (const name of names) {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
    await until(patience, `definition ${name}: not served`, async () =>
      lookForCondition(await api.get(path), "Established"),
    );
  }
}

/**
 * Waits until Calico's operator says that a part of it works.
 *
 * @throws Failure `testbed` with the operator's own words
 */
export async function awaitCalico(
  api: KubernetesApi,
  part: string,
  patience: Patience,
): Promise<void> {
  const path = `/apis/operator.tigera.io/v1/tigerastatuses/${part}`;
  await until(patience, `calico: part ${part} is not available`, async () =>
    lookForCondition(await api.get(path), "Available"),
  );
}

/**
 * Waits until a pod that asks for a sidecar would get one. The server is asked to create the pod
 * and to keep nothing of it, which calls the webhook just as a real pod does.
 *
 * @throws Failure `testbed` if the webhook does not answer, or does not inject
 */
export async function awaitInjection(api: KubernetesApi, patience: Patience): Promise<void> {
  await until(patience, "mesh: sidecar injector is not usable", async () =>
    lookForSidecar(await api.post("/api/v1/namespaces/default/pods?dryRun=All", injectablePod)),
  );
}

/** Address of a service, once it has one. */
export async function addressOfService(
  api: KubernetesApi,
  namespace: string,
  name: string,
  patience: Patience,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/services/${name}`;
  return until(patience, `service ${namespace}/${name}: has no address`, async () => {
    const answer = await api.get(path);
    const service = z.object({ spec: z.object({ clusterIP: z.ipv4() }) }).safeParse(answer.body);
    return service.success ? { found: service.data.spec.clusterIP } : problemOf(answer);
  });
}

const injectablePod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "ztbench-injection-probe",
    labels: { "sidecar.istio.io/inject": "true" },
  },
  spec: { containers: [{ name: "probe", image: "never-pulled" }] },
} as const;

const containers = z.array(z.object({ name: z.string() }));
const podSchema = z.object({
  spec: z.object({ containers, initContainers: containers.optional() }),
});

function lookForSidecar(answer: ApiAnswer): Look<true> {
  const pod = podSchema.safeParse(answer.body);
  if (!pod.success) return problemOf(answer);
  const { containers: main, initContainers = [] } = pod.data.spec;
  // Among the first ones where sidecars are native.
  return [...main, ...initContainers].some(({ name }) => name === "istio-proxy")
    ? { found: true }
    : { problem: "the pod would get no sidecar" };
}

function lookForCondition(answer: ApiAnswer, wanted: string): Look<true> {
  const parsed = conditionsSchema.safeParse(answer.body);
  if (!parsed.success) return problemOf(answer);
  const { conditions } = parsed.data.status;
  if (conditions.some(({ type, status }) => type === wanted && status === "True")) {
    return { found: true };
  }
  const said = conditions.flatMap(({ type, status, message }) =>
    status === "True" || type === wanted
      ? [`${type} ${status}${message === undefined || message === "" ? "" : ` (${message})`}`]
      : [],
  );
  return { problem: said.join(", ") || "no condition yet" };
}

function problemOf({ status, body }: ApiAnswer): { readonly problem: string } {
  const said = messageSchema.safeParse(body);
  return { problem: `status ${status}${said.success ? `, ${said.data.message}` : ""}` };
}

async function until<T>(
  { waitMs, pollMs }: Patience,
  subject: string,
  look: () => Promise<Look<T>>,
): Promise<T> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const seen = await look().catch((error: unknown) => ({
      problem: error instanceof Error ? error.message : String(error),
    }));
    if ("found" in seen) return seen.found;
    if (performance.now() >= deadline) {
      throw new Failure(
        "testbed",
        `${subject} after ${waitMs / 1000} s, last answer: ${seen.problem}`,
        { hint: "look at the pods: kubectl get pods -A; then once more: pulumi up -s cluster" },
      );
    }
    await pause(pollMs);
  }
}
