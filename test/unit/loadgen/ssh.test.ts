import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { Failure } from "../../../contracts/failure.ts";
import { renderKnownHosts, renderSshConfig } from "../../../loadgen/ssh-config.ts";
import { sshFailure } from "../../../loadgen/ssh-failure.ts";
import { openTransport, shellWord } from "../../../loadgen/ssh.ts";
import { exampleTestbed } from "./example.ts";

const testbed = exampleTestbed();
const [client] = testbed.hosts;
const never = new AbortController().signal;
assert.ok(client);

test("pins one key a host under a name that no address can match", () => {
  assert.equal(
    renderKnownHosts(testbed),
    [
      "ztbench-client ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIclient",
      "ztbench-gateway ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIgateway",
      "ztbench-server ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIserver",
      "",
    ].join("\n"),
  );
});

test("takes nothing but the testbed document for the way to a host", () => {
  const host = { ...client, managementPort: 2222, user: "bench", identityFile: "/my keys/100%" };
  const config = renderSshConfig({ ...testbed, hosts: [host] }, "/tmp/x");
  assert.equal(
    config,
    `Host client
  HostName 198.18.1.10
  Port 2222
  User bench
  IdentityFile "/my keys/100%%"
  HostKeyAlias ztbench-client
  HostKeyAlgorithms ssh-ed25519

Host *
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile "/tmp/x/known_hosts"
  GlobalKnownHostsFile none
  IdentitiesOnly yes
  IdentityAgent none
  ForwardAgent no
  ConnectTimeout 5
  ServerAliveInterval 15
  ServerAliveCountMax 2
  LogLevel ERROR
  ControlMaster auto
  ControlPath "/tmp/x/%n"
  ControlPersist 600
`,
  );
});

test("asks for signatures that an RSA host key can give", () => {
  const host = { ...client, hostKey: "ssh-rsa AAAA" };
  const config = renderSshConfig({ ...testbed, hosts: [host] }, "/tmp/x");
  assert.match(config, /HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256\n/);
});

const complaints: readonly [string, RegExp][] = [
  [
    "ssh: connect to host 198.18.1.10 port 22: Connection timed out",
    /no answer from 198\.18\.1\.10 port 22/,
  ],
  ["ssh: connect to host 198.18.1.10 port 22: No route to host", /no answer from/],
  ["ssh: connect to host 198.18.1.10 port 22: Connection refused", /no answer from/],
  ["client_loop: send disconnect: Broken pipe", /no answer from/],
  ["Timeout, server 198.18.1.10 not responding.", /no answer from/],
  [
    "No ED25519 host key is known for ztbench-client\nHost key verification failed.",
    /key is not the pinned one/,
  ],
  [
    "Unable to negotiate with 198.18.1.10: no matching host key type found.",
    /key is not the pinned one/,
  ],
  [
    "root@198.18.1.10: Permission denied (publickey).",
    /user root was refused with identityFile \/keys\/id/,
  ],
  ["something new", /ssh failed, something new/],
  ["", /ssh failed, without a message/],
];

for (const [text, says] of complaints) {
  test(`explains what ssh says: "${text}"`, () => {
    const failure = sshFailure(client, text);
    assert.equal(failure.code, "testbed");
    assert.match(failure.message, /^host client: /);
    assert.match(failure.message, says);
    assert.notEqual(failure.hint, undefined);
  });
}

test("names the host whose private key cannot be read, before anything is sent", async () => {
  await assert.rejects(
    openTransport(testbed),
    /host client: identityFile cannot be read, found \/keys\/id/,
  );
});

test("tells a bound of the caller, which is the hosts' doing, from an interruption", async () => {
  const hosts = testbed.hosts.map((host) => ({ ...host, identityFile: import.meta.filename }));
  const transport = await openTransport({ ...testbed, hosts });
  const script = { title: "clearing of a run", text: "true", timeoutSeconds: 1 };
  const failureOf = (signal: AbortSignal) =>
    transport.run("client", script, signal).catch((error: unknown) => error);
  const bound = AbortSignal.timeout(1);
  // Its timer does not keep a process alive that has nothing else to do.
  for (const end = Date.now() + 5000; !bound.aborted && Date.now() < end;) await delay(1);
  const late = await failureOf(AbortSignal.any([never, bound]));
  assert.ok(late instanceof Failure);
  assert.equal(late.code, "testbed");
  assert.match(late.message, /^host client: clearing of a run was not done in the time/);
  const interrupted = await failureOf(AbortSignal.abort());
  assert.ok(interrupted instanceof Failure);
  assert.equal(interrupted.code, "interrupted");
  await transport.close();
});

test("quotes any word so that a shell takes it as it is", () => {
  fc.assert(
    fc.property(fc.array(fc.string().filter((s) => !s.includes("\0"))), (words) => {
      const script = `printf '%s\\0' ${words.map(shellWord).join(" ")}`;
      const printed = execFileSync("/bin/sh", ["-c", script]).toString();
      assert.deepEqual(printed, words.length === 0 ? "\0" : words.map((w) => `${w}\0`).join(""));
    }),
    { numRuns: 40 },
  );
});
