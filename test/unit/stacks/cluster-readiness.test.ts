import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Failure } from "../../../contracts/failure.ts";
import {
  addressOfService,
  awaitCalico,
  awaitDefinitions,
  awaitInjection,
} from "../../../stacks/cluster-readiness.ts";
import type { ApiAnswer, KubernetesApi } from "../../../stacks/kubernetes-api.ts";
import { kubernetesApi } from "../../../stacks/kubernetes-api.ts";

/** Answers one after the other; the last one again and again. */
function apiOf(...answers: readonly (ApiAnswer | Error)[]) {
  const asked: string[] = [];
  const answer = (path: string) => {
    const next = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(path);
    return next instanceof Error || next === undefined
      ? Promise.reject(next ?? new Error("nothing to say"))
      : Promise.resolve(next);
  };
  const api: KubernetesApi = { get: answer, post: answer };
  return { api, asked };
}

const refusal = (message: string): ApiAnswer => ({ status: 500, body: { message } });
const condition = (type: string, status: string, message = ""): ApiAnswer => ({
  status: 200,
  body: { status: { conditions: [{ type, status, message }] } },
});
const podWith = (...names: string[]): ApiAnswer => ({
  status: 201,
  body: { spec: { containers: names.map((name) => ({ name })) } },
});
const quick = { waitMs: 100, pollMs: 5 };

const timesOut = async (run: Promise<unknown>, message: RegExp) => {
  const started = performance.now();
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof Failure && error.code === "testbed");
    assert.match(error.message, message);
    return true;
  });
  assert.ok(performance.now() - started < 10 * quick.waitMs);
};

suite("the sidecar injector", () => {
  test("is awaited through refusals and pods without a sidecar", async () => {
    const { api, asked } = apiOf(
      new Error("ECONNREFUSED"),
      refusal('failed calling webhook "rev.object": no endpoints available'),
      podWith("probe"),
      podWith("probe", "istio-proxy"),
    );
    await awaitInjection(api, quick);
    assert.equal(asked.length, 4);
    assert.match(asked[0] ?? "", /\?dryRun=All$/);
  });

  test("counts where sidecars are the first containers of a pod, too", async () => {
    const native = { spec: { containers: [], initContainers: [{ name: "istio-proxy" }] } };
    await awaitInjection(apiOf({ status: 201, body: native }).api, quick);
  });

  test("that never answers is named with the last answer, in bounded time", async () => {
    const { api } = apiOf(refusal("failed calling webhook: connection refused"));
    await timesOut(
      awaitInjection(api, quick),
      /^mesh: sidecar injector is not usable after 0\.1 s, last answer: status 500, failed calling/,
    );
  });

  test("that answers but injects nothing is named", async () => {
    await timesOut(awaitInjection(apiOf(podWith("probe")).api, quick), /would get no sidecar$/);
  });

  test("of an API server that is gone is named, in bounded time", async () => {
    const { api } = apiOf(new Error("connect ECONNREFUSED 127.0.0.1:6443"));
    await timesOut(awaitInjection(api, quick), /last answer: connect ECONNREFUSED/);
  });
});

suite("definitions", () => {
  test("are awaited one by one", async () => {
    const { api, asked } = apiOf(
      { status: 404, body: { message: "not found" } },
      condition("Established", "True"),
    );
    await awaitDefinitions(api, ["a.example", "b.example"], quick);
    assert.equal(asked.length, 3);
  });

  test("that are missing are named", async () => {
    const { api } = apiOf({ status: 404, body: { message: "not found" } });
    await timesOut(
      awaitDefinitions(api, ["peerauthentications.security.istio.io"], quick),
      /^definition peerauthentications\.security\.istio\.io: not served after .* status 404/,
    );
  });
});

test("Calico that does not get ready is named in its operator's words", async () => {
  await awaitCalico(apiOf(condition("Available", "True")).api, "calico", quick);
  const { api } = apiOf(condition("Degraded", "True", "Failed to pull image"));
  await timesOut(awaitCalico(api, "calico", quick), /Degraded True \(Failed to pull image\)$/);
});

test("a service without an address is named", async () => {
  const found = { status: 200, body: { spec: { clusterIP: "198.19.0.7" } } };
  assert.equal(
    await addressOfService(apiOf(found).api, "istio-system", "istiod", quick),
    "198.19.0.7",
  );
  const headless = { status: 200, body: { spec: { clusterIP: "None" } } };
  await timesOut(
    addressOfService(apiOf(headless).api, "istio-system", "istiod", quick),
    /^service istio-system\/istiod: has no address/,
  );
});

test("a kubeconfig of another form is refused without showing it", () => {
  for (const text of ["", "clusters: []", "users: [{user: {token: secret}}]"]) {
    assert.throws(
      () => kubernetesApi(text),
      (error) => error instanceof Failure && !error.message.includes("secret"),
    );
  }
});
