/**
 * A real API server on loopback with what makes it work: etcd, controllers, the scheduler, and kwok,
 * which plays the nodes. For tests that want its judgement of objects; nothing ever runs in a pod.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { $ } from "zx";
import { toolPaths } from "../../tools/paths.ts";

const root = path.resolve(import.meta.dirname, "..", "..");
const paths = toolPaths(root);
const readySeconds = 60;
const stopSeconds = 10;

export type Done = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

export type ApiServer = {
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string;
  /** Seconds until it was ready. */
  readonly seconds: number;
  /** Runs kubectl; never throws. */
  kubectl(args: readonly string[], input?: string): Promise<Done>;
  /** Ends every process, newest first, and removes all files. */
  stop(): Promise<void>;
};

type Service = { readonly name: string; readonly child: ChildProcess; readonly log: string };

/**
 * Starts everything and waits until objects are accepted.
 *
 * @param nodes labels of nodes to play, by name
 * @throws Error with the last lines of a log if a program ends early or nothing is ready in 60 s
 */
export async function startApiServer(
  nodes: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<ApiServer> {
  const began = performance.now();
  const directory = mkdtempSync(path.join(tmpdir(), "ztbench-api-"));
  const services: Service[] = [];
  const file = (name: string) => path.join(directory, name);
  const stop = async () => {
    for (const { child } of services.reverse()) await end(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const [api = 0, store = 0, peer = 0, ...rest] = await freePorts(6);
    const run = (name: string, args: readonly string[]) => {
      services.push(start(name, args, file(`${name}.log`)));
    };
    writeKeys(directory, api);
    const kubeconfig = file("kubeconfig");
    const kubectl = (args: readonly string[], input = "") => call(kubeconfig, args, input);
    run("etcd", etcdFlags(file("etcd"), store, peer));
    run("kube-apiserver", serverFlags(directory, api, store));
    await until(services, async () => (await kubectl(["get", "--raw", "/readyz"])).exitCode === 0);
    startControllers(run, directory, kubeconfig, rest);
    const played = Object.entries(nodes).map(nodeObject);
    if (played.length > 0) await mustApply(kubectl, played);
    await until(services, async () => {
      const account = await kubectl(["get", "serviceaccount", "default"]);
      const ready = await kubectl(["get", "nodes", "--no-headers"]);
      const isReady = (line: string) => line.includes(" Ready ");
      return (
        account.exitCode === 0 && ready.stdout.split("\n").filter(isReady).length === played.length
      );
    });
    return { kubeconfig, seconds: (performance.now() - began) / 1000, kubectl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function programOf(name: string): string {
  const found = [paths.clusterBin, paths.bin]
    .map((directory) => path.join(directory, name))
    .find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new Error(`${name} is not installed: node --import tsx tools/install.ts --with-tests`);
}

/** Ends with this process, however that ends. */
function start(name: string, args: readonly string[], log: string): Service {
  const output = openSync(log, "w", 0o600);
  const argv = ["--pdeathsig", "KILL", programOf(name), ...args];
  const child = spawn("setpriv", argv, { stdio: ["ignore", output, output], detached: true });
  closeSync(output);
  return { name, child, log };
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  if (child.exitCode !== null || child.signalCode !== null || !child.kill("SIGTERM")) return;
  const forced = setTimeout(() => child.kill("SIGKILL"), stopSeconds * 1000);
  await gone;
  clearTimeout(forced);
}

async function until(services: readonly Service[], holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + readySeconds * 1000;
  for (;;) {
    if (await holds()) return;
    const ended = services.find(({ child }) => child.exitCode !== null);
    if (ended !== undefined) throw new Error(`${ended.name} has ended: ${lastLines(ended.log)}`);
    if (performance.now() > deadline) {
      const said = services.map(({ name, log }) => `${name}: ${lastLines(log)}`).join("\n");
      throw new Error(`not ready after ${readySeconds} s\n${said}`);
    }
    await delay(100);
  }
}

function lastLines(log: string): string {
  return readFileSync(log, "utf8").trimEnd().split("\n").slice(-5).join("\n");
}

/** Ports that nobody listens on; the system gives each away only once for a while. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once("error", reject);
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            resolve(typeof address === "object" && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** Keys for tokens of service accounts, and a token with all rights; good for this server only. */
function writeKeys(directory: string, port: number): void {
  const secret = { mode: 0o600 };
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const token = randomBytes(16).toString("hex");
  const write = (name: string, text: string) => {
    writeFileSync(path.join(directory, name), text, secret);
  };
  write("accounts.key", privateKey);
  write("accounts.pub", publicKey);
  write("tokens.csv", `${token},admin,admin,system:masters\n`);
  const cluster = {
    server: `https://127.0.0.1:${port}`,
    "certificate-authority": path.join(directory, "certificates", "apiserver.crt"),
  };
  const document = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  };
  write("kubeconfig", JSON.stringify(document));
}

function etcdFlags(directory: string, port: number, peerPort: number): string[] {
  const url = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    ...["--data-dir", directory, "--unsafe-no-fsync", "--log-level", "error"],
    ...["--listen-client-urls", url, "--advertise-client-urls", url],
    ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
    ...["--initial-cluster", `default=${peer}`],
  ];
}

function serverFlags(directory: string, port: number, store: number): string[] {
  const file = (name: string) => path.join(directory, name);
  return [
    ...["--etcd-servers", `http://127.0.0.1:${store}`],
    ...["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"],
    ...["--secure-port", String(port), "--cert-dir", file("certificates")],
    ...["--service-cluster-ip-range", "198.18.144.0/20", "--authorization-mode", "RBAC"],
    ...["--token-auth-file", file("tokens.csv")],
    ...["--service-account-issuer", "https://kubernetes.default.svc"],
    ...["--service-account-key-file", file("accounts.pub")],
    ...["--service-account-signing-key-file", file("accounts.key")],
    ...["--allow-privileged", "--profiling=false"],
  ];
}

function startControllers(
  run: (name: string, args: readonly string[]) => void,
  directory: string,
  kubeconfig: string,
  [manager = 0, scheduler = 0, kwok = 0]: readonly number[],
): void {
  const local = (port: number) => ["--bind-address", "127.0.0.1", "--secure-port", String(port)];
  const common = ["--kubeconfig", kubeconfig, "--leader-elect=false"];
  run("kube-controller-manager", [
    ...common,
    ...local(manager),
    "--service-account-private-key-file",
    path.join(directory, "accounts.key"),
    "--root-ca-file",
    path.join(directory, "certificates", "apiserver.crt"),
  ]);
  run("kube-scheduler", [...common, ...local(scheduler)]);
  run("kwok", [
    ...["--kubeconfig", kubeconfig, "--manage-all-nodes=true"],
    ...["--server-address", `127.0.0.1:${kwok}`],
  ]);
}

function nodeObject([name, labels]: readonly [string, Readonly<Record<string, string>>]): object {
  const resources = { cpu: "48", memory: "192Gi", pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } },
    status: { allocatable: resources, capacity: resources },
  };
}

async function mustApply(kubectl: ApiServer["kubectl"], objects: readonly object[]): Promise<void> {
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  const done = await kubectl(["create", "--filename", "-"], list);
  if (done.exitCode !== 0) throw new Error(done.stderr);
}

async function call(kubeconfig: string, args: readonly string[], input: string): Promise<Done> {
  const shell = $({ quiet: true, nothrow: true, timeout: "60s", input });
  const done = await shell`${programOf("kubectl")} --kubeconfig ${kubeconfig} ${args}`;
  return { exitCode: done.exitCode ?? -1, stdout: done.stdout, stderr: done.stderr };
}
