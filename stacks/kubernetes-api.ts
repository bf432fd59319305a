/** Asks an API server directly, with what a kubeconfig says: for answers that no resource gives. */
import { request } from "node:https";
import { parse } from "yaml";
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";

/** One question; a server that does not answer is not waited for longer. */
const answerMs = 5000;
/** Far more than the objects asked for; bounds what a wrong server can send. */
const answerBytes = 8 * 1024 * 1024;

const base64 = z.base64().min(1);
const kubeconfigSchema = z.object({
  clusters: z
    .array(
      z.object({
        cluster: z.object({ server: z.url(), "certificate-authority-data": base64 }),
      }),
    )
    .min(1),
  users: z
    .array(
      z.object({
        user: z.object({ "client-certificate-data": base64, "client-key-data": base64 }),
      }),
    )
    .min(1),
});

export type ApiAnswer = { readonly status: number; readonly body: unknown };

export type KubernetesApi = {
  /**
   * @returns whatever the server answers, also a refusal
   * @throws Error if it does not answer
   */
  readonly get: (path: string) => Promise<ApiAnswer>;
  readonly post: (path: string, body: object) => Promise<ApiAnswer>;
};

/**
 * @param kubeconfig the document itself; it holds certificates, not names of files
 * @throws Failure `testbed` for one of another form
 */
export function kubernetesApi(kubeconfig: string): KubernetesApi {
  const parsed = kubeconfigSchema.safeParse(parse(kubeconfig));
  const [cluster] = parsed.data?.clusters ?? [];
  const [user] = parsed.data?.users ?? [];
  if (cluster === undefined || user === undefined) {
    throw new Failure(
      "testbed",
      `kubeconfig: not usable, ${parsed.error?.issues[0]?.path.join(".") ?? "no cluster"}, ` +
        "a server and certificates in the document expected",
      { hint: "pulumi up -s cluster" },
    );
  }
  const pem = (text: string) => Buffer.from(text, "base64").toString();
  const credentials = {
    ca: pem(cluster.cluster["certificate-authority-data"]),
    cert: pem(user.user["client-certificate-data"]),
    key: pem(user.user["client-key-data"]),
  };
  const ask = (method: string, path: string, body?: object) =>
    exchange(new URL(path, cluster.cluster.server), { ...credentials, method }, body);
  return {
    get: (path) => ask("GET", path),
    post: (path, body) => ask("POST", path, body),
  };
}

type Exchange = {
  readonly method: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
};

function exchange(url: URL, options: Exchange, body?: object): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { accept: "application/json", "content-type": "application/json" };
    // Without an agent: a kept connection would keep the program alive.
    const asked = request(url, { ...options, headers, agent: false }, (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes > answerBytes) asked.destroy(new Error(`answer over ${answerBytes} bytes`));
        parts.push(part);
      });
      answer.on("error", reject);
      answer.on("end", () => {
        resolve({ status: answer.statusCode ?? 0, body: readBody(Buffer.concat(parts)) });
      });
    });
    const late = () => asked.destroy(new Error(`no whole answer in ${answerMs} ms`));
    const timer = setTimeout(late, answerMs);
    asked.on("close", () => {
      clearTimeout(timer);
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function readBody(content: Buffer): unknown {
  const text = content.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
