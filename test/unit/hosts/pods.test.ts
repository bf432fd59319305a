import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { quote, shellPart } from "../../../hosts/shell.ts";
import { runBash } from "../../support/bash.ts";

const directory = mkdtempSync(path.join(tmpdir(), "ztbench-pods-"));
after(() => {
  rmSync(directory, { recursive: true });
});

const id = "c0ffee".repeat(10);
const uid = "11111111-2222-3333-4444-555555555555";

function write(file: string, text: string): void {
  const target = path.join(directory, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
}

/** A process as the kernel shows it. */
function makeProcess(number: number, cgroup: string): void {
  write(`proc/${number}/cgroup`, cgroup);
  write(`proc/${number}/status`, "PPid:\t7\nCpus_allowed_list:\t6-7\n");
}

const unified = `0::/kubepods/pod${uid}/${id}\n`;
const older = [
  "9:memory:/kubepods/m/" + id,
  `4:cpu,cpuacct:/kubepods/pod${uid}/${id}`,
  "1:name=systemd:/system.slice/containerd.service",
  "0::/system.slice/containerd.service\n",
].join("\n");

makeProcess(9, unified);
makeProcess(120, unified);
makeProcess(3, "0::/system.slice/other.service\n");

function run(call: string) {
  const parts = [
    "set -euo pipefail",
    'fail() { echo "$1" >&2; exit 1; }',
    ...["proc", "kubelet", "root"].map((name) => `${name}=${quote(path.join(directory, name))}`),
    'mkdir -p "$root" "$kubelet"',
    shellPart("pods"),
    call,
  ];
  return runBash(parts.join("\n"));
}

test("a container is its oldest process, and each hierarchy is understood", () => {
  assert.equal(run(`container_process ${id}`).stdout, "9\n");
  assert.equal(run(`container_group 9 ${id}`).stdout, `/kubepods/pod${uid}/${id}\n`);
  makeProcess(10, older);
  assert.equal(run(`container_group 10 ${id}`).stdout, `/kubepods/pod${uid}/${id}\n`);
});

test("CPUs that a container has for itself are those that the kubelet gave it", () => {
  const entries = { [uid]: { service: "8-11", other: "2" }, another: { service: "4" } };
  const state = { policyName: "static", defaultCpuSet: "0", entries, checksum: 1 };
  write("kubelet/cpu_manager_state", JSON.stringify(state));
  assert.equal(run(`exclusive_cpus ${uid} service`).stdout, "8-11\n");
  assert.equal(run(`exclusive_cpus ${uid} istio-proxy`).stdout, "-\n");
  assert.equal(run("exclusive_cpus nobody service").stdout, "-\n");
  write("kubelet/cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1}');
  assert.equal(run(`exclusive_cpus ${uid} service`).stdout, "-\n");
});

test("each container is told of, and the pod's network is linked", () => {
  const { stdout, exitCode } = run(`pods_containers 'service ${uid} service ${id}'`);
  assert.equal(exitCode, 0);
  assert.equal(stdout, `containers:\n\tservice service /kubepods/pod${uid}/${id} 6-7 -\n`);
  const link = (name: string) => readlinkSync(path.join(directory, "root", name));
  assert.equal(link("service.net"), path.join(directory, "proc/9/ns/net"));
  assert.equal(link("cgroup"), path.join(directory, "proc/7/root/sys/fs/cgroup"));
});

test("a container that has ended is named", () => {
  const { stderr, exitCode } = run(`pods_containers 'service ${uid} service ${"d".repeat(60)}'`);
  assert.equal(exitCode, 1);
  assert.match(stderr, /pod service: no process of container service on this host/);
});

test("a configuration has the same digest in another order and at another time, and no other", () => {
  const dump = (time: string, lines: readonly string[], port = 8080) =>
    run(
      `configuration_digest <<<${quote(
        [
          `### ${time} scrape static_listeners`,
          ` "last_updated": "${time}"`,
          ...lines,
          ` "port": ${port}`,
        ].join("\n"),
      )}`,
    ).stdout;
  const first = dump("1", [' "a": 1,', ' "b": 2']);
  assert.match(first, /^[0-9a-f]{64}\n$/);
  assert.equal(dump("2", [' "b": 2,', ' "a": 1']), first);
  assert.notEqual(dump("1", [' "a": 1,', ' "b": 2'], 8081), first);
});
