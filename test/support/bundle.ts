/** Makes synthetic bundles whose true latencies, CPU times and faults are known. */
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { stringify } from "yaml";
import type { Deployment } from "../../contracts/deployment.ts";
import type { Manifest } from "../../contracts/manifest.ts";
import { isBaseline, loadOf, type Plan } from "../../contracts/plan.ts";
import type { RunRecord } from "../../contracts/record.ts";

export type Row = {
  readonly seq: number;
  /** Nanoseconds after the start of the plan. */
  readonly sentNs: number;
  readonly latencyNs: number;
  readonly code?: number;
  readonly error?: string;
};

export type RunShape = {
  readonly block: number;
  readonly label: string;
  readonly arm: "a" | "b";
};

/** What a run of the synthetic campaign shows; later entries of `edit` win. */
export type RunContent = {
  readonly rows: readonly Row[];
  /** CPU time of the service per request, microseconds. */
  readonly cpuPerRequestUs: number;
  /** The same of further units on the server, which `edit` puts into the deployment. */
  readonly furtherUs?: Readonly<Record<string, number>>;
  readonly edit?: (record: RunRecord) => RunRecord;
};

export type BundleOptions = {
  readonly blocks?: number;
  readonly labels?: readonly string[];
  readonly rateQps?: number;
  readonly durationSeconds?: number;
  /** Changes the plan before anything is made of it. */
  readonly editPlan?: (plan: Plan) => Plan;
  readonly content: (shape: RunShape, plan: Plan) => RunContent;
};

export const startNs = 1_790_000_000_000_000_000n;

/** A generator of numbers in [0, 1) that gives the same sequence for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A standard normal draw (Box-Muller). */
export function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Rows of a run without faults: sent `lagNs` late, each answered after `latencyNs`. */
export function steadyRows(
  plan: Plan,
  latencyNs: (seq: number) => number,
  lagNs = 20_000,
): readonly Row[] {
  const { rateQps, durationSeconds } = plan.load;
  const intervalNs = Math.floor(1e9 / rateQps);
  return Array.from({ length: rateQps * durationSeconds }, (_, seq) => ({
    seq,
    sentNs: seq * intervalNs + lagNs,
    latencyNs: Math.round(latencyNs(seq)),
  }));
}

export function planOf(options: Omit<BundleOptions, "content">): Plan {
  const plan = plainPlan(options);
  return options.editPlan?.(plan) ?? plan;
}

function plainPlan(options: Omit<BundleOptions, "content">): Plan {
  return {
    schema: "ztbench/plan/1",
    name: "synthetic",
    purpose: "known answers for tests",
    seed: 7,
    blocks: options.blocks ?? 3,
    baseline: "baseline",
    treatments: (options.labels ?? ["baseline", "gateway"]).map((label) => ({
      label,
      topology: label,
      runtime: "native" as const,
      parameters: {},
      driver: "vegeta-paced" as const,
      arrival: "uniform" as const,
      condition: "steady" as const,
      connectionLimit: "bounded" as const,
    })),
    load: {
      rateQps: options.rateQps ?? 1000,
      prewarm: { rateQps: 50, seconds: 2 },
      warmupSeconds: 1,
      durationSeconds: options.durationSeconds ?? 10,
      timeoutSeconds: 5,
      connections: 32,
      workers: 64,
      maxWorkers: 4000,
      bodyBytes: 256,
    },
    equivalenceMargin: 0.05,
  };
}

const echoUnit = "ztbench-echo.service";

/** What the service says it has answered. */
const servedText = (requests: number): string =>
  `### ${startNs} scrape service\n{"protocols":{"HTTP/1.1":${requests},"HTTP/2":0}}\n`;

function deploymentOf(topology: string): Deployment {
  const url = "http://198.18.0.12:8080/api/echo";
  return {
    schema: "ztbench/deployment/1",
    topology,
    runtime: "native",
    testbed: "synthetic",
    testbedClass: "lab",
    parameters: {},
    entry: { host: "client", url, http: "1.1", headers: {} },
    legs: [
      {
        from: "load",
        to: "echo",
        http: "1.1",
        tls: "none",
        wire: {},
        seenBy: [{ at: "service", unit: echoUnit }],
      },
    ],
    statistics: [{ unit: echoUnit, host: "server", url: "http://127.0.0.1:9902/stats" }],
    units: [
      {
        name: echoUnit,
        host: "server",
        kind: "service",
        program: "ztecho",
        cpus: "1",
        dataPlane: true,
      },
    ],
    admin: [],
    probes: [
      {
        id: "answers",
        kind: "positive",
        shows: "the path answers",
        host: "client",
        url,
        http: "1.1",
        headers: {},
        timeoutSeconds: 2,
        expect: { outcome: "status", status: 200 },
      },
    ],
    scheduling: "rr",
    configurationDigest: createHash("sha256").update(topology).digest("hex"),
  };
}

export function recordOf(plan: Plan, shape: RunShape, run: number, position: number): RunRecord {
  const treatment = plan.treatments.find(({ label }) => label === shape.label);
  if (treatment === undefined) throw new Error(`no treatment ${shape.label}`);
  const load = loadOf(plan, treatment);
  const { rateQps, durationSeconds } = load;
  const results = {
    schema: "ztbench/probe-results/1" as const,
    results: [
      {
        id: "answers",
        passed: true,
        observed: { outcome: "status" as const, status: 200 },
        durationNs: 1_000_000,
      },
    ],
  };
  return {
    schema: "ztbench/record/1",
    run,
    position,
    ...shape,
    treatment,
    load,
    deployment: deploymentOf(treatment.topology),
    generator: { unit: `ztbench-load-test-${run}.service`, host: "client", cpus: "0" },
    loadPlan: {
      schema: "ztbench/load-plan/1",
      driver: treatment.driver,
      arrival: treatment.arrival,
      rateQps,
      intervalNs: Math.floor(1e9 / rateQps),
      planned: rateQps * durationSeconds,
      startNs: String(startNs),
      seed: 1,
    },
    startedAt: "2026-09-21T13:33:10Z",
    finishedAt: "2026-09-21T13:33:40Z",
    measuredFromNs: String(startNs - 5_000_000n),
    measuredToNs: String(startNs + BigInt(Math.round(durationSeconds * 1e9)) + 5_000_000n),
    phaseSeconds: { load: durationSeconds },
    probes: { before: results, after: results },
    tuning: { server: { somaxconn: "applied 32768" } },
    files: {},
  };
}

/** The text that the sampler writes: a unit whose CPU time grows with the load, once a second. */
export function sampleText(
  units: readonly { unit: string; usPerSecond: number; pid?: number }[],
  seconds: number,
): string {
  const blocks: string[] = [];
  for (let second = -1; second <= seconds + 1; second += 1) {
    const at = startNs + BigInt(second) * 1_000_000_000n + 40_000_000n;
    const loaded = Math.min(Math.max(second + 0.04, 0), seconds);
    for (const { unit, usPerSecond, pid = 100 } of units) {
      const usage = 50_000 + Math.round(loaded * usPerSecond);
      blocks.push(
        `### ${at} unit ${unit} cpu.stat\nusage_usec ${usage}\nuser_usec ${usage}\n`,
        `### ${at} unit ${unit} cgroup.procs\n${pid}\n`,
        `### ${at} unit ${unit} pid ${pid} status\nName:\tx\nVmRSS:\t    20480 kB\n`,
        `### ${at} unit ${unit} pid ${pid} tasks\n${pid} 1000 ${(second + 1) * 1_000_000} 5\n`,
      );
    }
  }
  return blocks.join("");
}

/** gzipped rows as the load driver's encoder writes them. */
export function renderRows(rows: readonly Row[]): Buffer {
  const lines = rows.map(({ seq, sentNs, latencyNs, code = 200, error = "" }) => {
    const quoted = /[",\r\n]/.test(error) ? `"${error.replaceAll('"', '""')}"` : error;
    return `${seq},${startNs + BigInt(sentNs)},${latencyNs},${code},${quoted}\n`;
  });
  return gzipSync(`seq,timestampNs,latencyNs,code,error\n${lines.join("")}`);
}

function manifestOf(plan: Plan, planText: string, order: Manifest["order"]): Manifest {
  return {
    schema: "ztbench/manifest/1",
    campaign: "synthetic",
    createdAt: "2026-09-21T13:30:00Z",
    planSha256: createHash("sha256").update(planText).digest("hex"),
    seed: plan.seed,
    versionSet: "lab",
    programs: [
      {
        name: "envoy",
        version: "1.36.2",
        articles: "1.28.0",
        sha256: "0".repeat(64),
        provenance: "PyPI wheel",
      },
      {
        name: "vegeta",
        version: "12.11.0",
        articles: "12.11.0",
        sha256: "1".repeat(64),
        provenance: "go module",
      },
      {
        name: "pulumi-resource-command",
        version: "1.2.1",
        sha256: "2".repeat(64),
        provenance: "stand-in: own code",
      },
    ],
    commit: "0123456789abcdef0123456789abcdef01234567",
    dirty: false,
    testbed: { name: "synthetic", class: "lab", scheduling: "rr" },
    facts: { server: { irq: "# CONFIG_IRQ_TIME_ACCOUNTING is not set" } },
    order,
    warnings: [],
  };
}

/**
 * The order of a synthetic campaign: baselines a, the others, baselines b, in each block; the last
 * of several blocks runs backwards, since an order that was drawn is not always the same.
 */
export function orderOf(plan: Plan): Manifest["order"] {
  const labels = plan.treatments.map(({ label }) => label);
  const baselines = labels.filter((label) => isBaseline(plan, label));
  const others = labels.filter((label) => !isBaseline(plan, label));
  const cells = [
    ...[...baselines, ...others].map((label) => ({ label, arm: "a" as const })),
    ...baselines.map((label) => ({ label, arm: "b" as const })),
  ];
  const isLast = (block: number): boolean => block > 0 && block === plan.blocks - 1;
  return Array.from({ length: plan.blocks }, (_, block) =>
    (isLast(block) ? cells.toReversed() : cells).map((cell, index) => ({
      run: block * cells.length + index + 1,
      block: block + 1,
      position: index + 1,
      ...cell,
    })),
  ).flat();
}

/** Writes a bundle into a new directory, which the caller removes with `removeBundle`. */
export async function makeBundle(options: BundleOptions): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "ztbench-bundle-"));
  const plan = planOf(options);
  const planText = stringify(plan);
  const order = orderOf(plan);
  await writeFile(path.join(directory, "plan.yaml"), planText);
  const manifest = manifestOf(plan, planText, order);
  await writeFile(path.join(directory, "manifest.json"), JSON.stringify(manifest, null, 2));
  for (const { run, position, block, label, arm } of order) {
    const content = options.content({ block, label, arm }, plan);
    const record = recordOf(plan, { block, label, arm }, run, position);
    await writeRun(directory, content, content.edit?.(record) ?? record);
  }
  await sealBundle(directory);
  return directory;
}

async function writeRun(directory: string, content: RunContent, record: RunRecord): Promise<void> {
  const { run, block, label, arm } = record;
  const name = `${String(run).padStart(3, "0")}-b${block}-${label}-${arm}`;
  const home = path.join(directory, "runs", name);
  const { durationSeconds, rateQps } = record.load;
  for (const folder of ["samples", "proxies", "connections"]) {
    await mkdir(path.join(home, folder), { recursive: true });
  }
  const count = record.treatment.condition === "cold-start" ? 0 : record.load.connections;
  const established = "0 0 198.18.0.10:40000 198.18.0.12:8080\n".repeat(count);
  await writeFile(path.join(home, "connections/client-before.txt"), established);
  const statistics = path.join(home, "proxies", echoUnit);
  await writeFile(`${statistics}-before.txt`, servedText(100));
  await writeFile(`${statistics}-after.txt`, servedText(100 + content.rows.length));
  await writeFile(path.join(home, "record.json"), JSON.stringify(record, null, 2));
  await writeFile(path.join(home, "requests.csv.gz"), renderRows(content.rows));
  const used = { [echoUnit]: content.cpuPerRequestUs, ...content.furtherUs };
  const served = Object.entries(used).map(([unit, us]) => ({ unit, usPerSecond: us * rateQps }));
  const sent = [{ unit: record.generator.unit, usPerSecond: 200_000 }];
  await writeFile(path.join(home, "samples/server.txt"), sampleText(served, durationSeconds));
  await writeFile(path.join(home, "samples/client.txt"), sampleText(sent, durationSeconds));
}

/** Writes SHA256SUMS over all files that are there now. */
export async function sealBundle(directory: string): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const lines: string[] = [];
  for (const entry of entries) {
    if (!entry.isFile() || entry.name === "SHA256SUMS") continue;
    const file = path.join(entry.parentPath, entry.name);
    const sum = createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
    lines.push(`${sum}  ${path.relative(directory, file)}\n`);
  }
  lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
  await writeFile(path.join(directory, "SHA256SUMS"), lines.join(""));
}

export async function removeBundle(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}
