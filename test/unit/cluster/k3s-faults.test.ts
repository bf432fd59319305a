import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { fakeHost, type FakeHost, fullToken } from "./k3s-host.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-k3s-"));
after(() => {
  rmSync(scratch, { recursive: true });
});
const newHost = () => fakeHost(mkdtempSync(path.join(scratch, "host-")));
/** Stand-ins wait one second where hosts wait minutes. */
const boundMs = 20_000;

function succeed(host: FakeHost, ...call: Parameters<FakeHost["run"]>): string {
  const { exitCode, stdout, stderr } = host.run(...call);
  assert.equal(exitCode, 0, stderr);
  return stdout;
}

function fail(host: FakeHost, ...call: Parameters<FakeHost["run"]>): string {
  const started = performance.now();
  const { exitCode, stderr } = host.run(...call);
  assert.notEqual(exitCode, 0);
  assert.ok(performance.now() - started < boundMs);
  assert.match(stderr, /^ {2}next: /m);
  return stderr;
}

suite("a server of k3s", () => {
  test("starts, and prints the full token and a kubeconfig for this machine", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    assert.equal(succeed(host, "gateway-cluster-token", "create"), `${fullToken}\n`);
    const kubeconfig = succeed(host, "gateway-kubeconfig", "create");
    assert.equal(kubeconfig, "    server: https://198.18.0.20:6443\n");
    const mode = statSync(path.join(host.base, "etc/rancher/k3s/cluster-token")).mode & 0o777;
    assert.equal(mode, 0o600);
    assert.match(
      succeed(host, "gateway-cluster-facts", "create"),
      /^version-k3s:\n\t1\.28\.5\+k3s1$/m,
    );
  });

  test("whose API server does not answer tells no facts", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    rmSync(path.join(host.base, "api"));
    assert.match(fail(host, "gateway-cluster-facts", "create"), /connection .* was refused/);
  });

  test("is left as it runs when nothing has changed", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    host.write("links", "no restart happened\n");
    succeed(host, "gateway-k3s", "create");
    assert.equal(host.read("links"), "no restart happened\n");
  });

  test("whose token is lost is given the one that the cluster still has", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    rmSync(path.join(host.base, "etc/rancher/k3s/cluster-token"));
    succeed(host, "gateway-k3s", "create");
    assert.equal(host.read("etc/rancher/k3s/cluster-token"), `${fullToken}\n`);
  });

  test("whose token is lost everywhere is named, not given another one", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    rmSync(path.join(host.base, "etc/rancher/k3s/cluster-token"));
    rmSync(path.join(host.base, "var/lib/rancher/k3s/server/token"));
    assert.match(fail(host, "gateway-k3s", "create"), /^cluster token: lost on host gateway/);
    assert.match(
      fail(host, "gateway-cluster-token", "create"),
      /^cluster token: lost on host gateway/,
    );
  });

  test("knows our own images by their digest, as pods name them", () => {
    const host = newHost();
    host.write("images", `${host.read("images")}ztbench.local/service:0.1.0\n`);
    succeed(host, "gateway-k3s", "create");
    const named = host
      .read("images")
      .split("\n")
      .filter((name) => name.includes("@"));
    assert.deepEqual(named, ["ztbench.local/service@sha256:0123"]);
  });

  test("without an image in its archives is refused with the name of the image", () => {
    const host = newHost();
    host.write("images", host.read("images").replace("docker.io/calico/typha:v3.26.4\n", ""));
    const message = /in no archive of the air-gap directory: docker\.io\/calico\/typha:v3\.26\.4$/m;
    assert.match(fail(host, "gateway-k3s", "create"), message);
  });
});

suite("an agent of k3s", () => {
  const token = { cluster_token: fullToken };

  test("joins with the full token only", () => {
    const host = newHost();
    succeed(host, "client-k3s", "create", token);
    assert.equal(host.read("etc/rancher/k3s/cluster-token"), `${fullToken}\n`);
    const short = { cluster_token: "secret-of-the-test" };
    assert.match(
      fail(newHost(), "client-k3s", "create", short),
      /not the full form on host client/,
    );
  });

  const reasons: readonly (readonly [string, string, RegExp])[] = [
    [
      "whose token the server refuses",
      `level=error msg="token CA hash does not match the Cluster CA certificate hash: ${fullToken}"`,
      /the server refuses its token/,
    ],
    [
      "that cannot reach the server",
      "failed to get CA certs: Get https://127.0.0.1:6444/cacerts: connection refused",
      /the server does not answer on port 6443/,
    ],
    [
      "that was a node before",
      "Node password rejected, duplicate hostname or contents of /etc/rancher/node/password",
      /the server knows another host of that name/,
    ],
    ["that says nothing known", "panic: something new", /for a reason that k3s gives/],
  ];
  for (const [name, journal, message] of reasons) {
    test(`${name} is named with its last lines, and no secret`, () => {
      const host = newHost();
      host.write("broken", `${journal}\n`);
      const shown = fail(host, "client-k3s", "create", token);
      assert.match(shown, /^unit k3s-agent\.service on host client: activating after 1 s/m);
      assert.match(shown, message);
      assert.doesNotMatch(shown, /secret-of-the-test/);
    });
  }

  test("that never joins is told from the server, within its time", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    assert.match(succeed(host, "client-node", "create"), /^kubelet-version:\n\tv1\.28\.5\+k3s1$/m);
    host.write("nodes", "gateway 198.18.0.20\n");
    const message = /^node client: has not joined .* 198\.18\.0\.10 expected, found: .*not found$/m;
    assert.match(fail(host, "client-node", "create"), message);
  });

  test("that joined with another address is named with both", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    host.write("nodes", "client 192.0.2.10\n");
    assert.match(
      fail(host, "client-node", "create"),
      /198\.18\.0\.10 expected, found: client 192\./,
    );
  });
});

suite("a cluster of somebody else", () => {
  for (const found of [
    "usr/local/bin/k3s",
    "etc/rancher/k3s/config.yaml",
    "etc/systemd/system/rke2-server.service",
    "var/lib/kubelet/config.yaml",
  ]) {
    test(`is refused by ${found}, and nothing is touched`, () => {
      const host = newHost();
      host.write(found, "theirs");
      const [first = ""] = fail(host, "client-before", "create").split("\n");
      assert.match(first, /^cluster: host client already has one that is not ours, found \//);
      assert.equal(host.has("var/lib/ztbench/cluster"), false);
      succeed(host, "client-before", "remove");
      assert.equal(host.read(found), "theirs");
    });
  }

  test("is refused by a listener on its port", () => {
    const host = newHost();
    host.write("listeners", "6443\n");
    assert.match(fail(host, "client-before", "create"), /found a listener on port 6443/);
  });
});

suite("removal of k3s", () => {
  test("leaves the host as it was, also what others had there", () => {
    const host = newHost();
    host.write("opt/cni/bin/theirs", "kept");
    host.write("etc/cni/net.d/87-podman.conflist", "kept");
    const before = ["links", "rules", "proc/self/mounts", "proc/sys/vm/overcommit_memory"];
    const contents = before.map((name) => host.read(name).replace(/ \[[\d:]+\]/g, ""));
    succeed(host, "gateway-k3s", "create");
    assert.match(host.read("rules"), /cali-FORWARD/);
    succeed(host, "gateway-k3s", "remove");
    assert.deepEqual(
      before.map((name) => host.read(name).replace(/ \[[\d:]+\]/g, "")),
      contents,
    );
    for (const gone of ["etc/rancher", "var/lib/rancher", "var/lib/kubelet", "var/lib/calico"]) {
      assert.equal(host.has(gone), false, gone);
    }
    assert.equal(host.has("usr/local/bin/k3s"), false);
    assert.equal(host.has("var/lib/ztbench/cluster"), false);
    assert.equal(host.read("opt/cni/bin/theirs"), "kept");
    assert.equal(host.read("etc/cni/net.d/87-podman.conflist"), "kept");
    assert.equal(host.has("etc/cni/net.d/10-calico.conflist"), false);
  });

  test("keeps a rule on the network of pods that was there before", () => {
    const host = newHost();
    const theirs = "-A INPUT -s 10.42.0.0/16 -j ACCEPT\n";
    host.write("rules", `:INPUT ACCEPT [5:300]\n${theirs}`);
    succeed(host, "gateway-k3s", "create");
    succeed(host, "gateway-k3s", "remove");
    assert.match(host.read("rules"), /^-A INPUT -s 10\.42\.0\.0\/16 -j ACCEPT$/m);
    assert.doesNotMatch(host.read("rules"), /cali|KUBE/);
  });

  test("needs neither an API server nor a second time", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    rmSync(path.join(host.base, "api"));
    succeed(host, "gateway-k3s", "remove");
    succeed(host, "gateway-k3s", "remove");
  });

  test("that cannot take something away names it, and can be done again", () => {
    const host = newHost();
    succeed(host, "gateway-k3s", "create");
    host.write("stuck", "");
    const message = /not left as it was before: link cali1234, link vxlan\.calico$/m;
    assert.match(fail(host, "gateway-k3s", "remove"), message);
    rmSync(path.join(host.base, "stuck"));
    succeed(host, "gateway-k3s", "remove");
    assert.doesNotMatch(host.read("links"), /cali/);
  });

  test("sweeps up after a start that was broken off", () => {
    const host = newHost();
    succeed(host, "client-before", "create");
    host.write("broken", "panic: killed\n");
    fail(host, "client-k3s", "create", { cluster_token: fullToken });
    succeed(host, "client-before", "remove");
    assert.equal(host.has("etc/rancher"), false);
    assert.equal(host.has("usr/local/bin/k3s"), false);
  });
});
