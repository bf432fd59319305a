/** The hosts stack on a lab of its own, by the real engine: what it sets, and that it all goes back. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { $ } from "zx";
import type { Host, Testbed } from "../../contracts/testbed.ts";
import { labDown, labUp } from "../../hosts/lab/lab.ts";
import { openLab } from "../../hosts/lab/options.ts";
import type { Knob } from "../../hosts/knobs.ts";
import { renderCampaignLease, renderLease } from "../../hosts/lease.ts";
import { knobsOf } from "../../hosts/profiles.ts";
import { renderHostScript } from "../../hosts/runner.ts";
import { parseReadback, renderVerify } from "../../hosts/tuning.ts";
import { type Done, type Engine, openEngine } from "../support/engine.ts";

const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "needs root, for a lab";
const lab = openLab({ name: "labh", network: 6 });
const quickly = ["--yes", "--skip-preview"];
const rebootSeconds = 30;

let engine: Engine;
let testbed: Testbed;
/** What the hosts were like before anything was done to them. */
let pristine: string[];

before(async () => {
  if (!isRoot) return;
  await labDown(lab);
  testbed = (await labUp(lab)).testbed;
  engine = openEngine(testbed);
  for (const stack of ["hosts", "jwt"]) await engine.init(stack);
  pristine = await readback();
});

after(async () => {
  if (!isRoot) return;
  await labDown(lab);
  engine.close();
});

function succeeded(done: Done): Done {
  assert.equal(done.exitCode, 0, done.output);
  return done;
}

function hostNamed(name: string): Host {
  const host = testbed.hosts.find((candidate) => candidate.name === name);
  assert.ok(host);
  return host;
}

async function on(host: string, command: string, input = ""): Promise<string> {
  const argv = ["ssh", "-F", lab.paths.sshConfig, host, command];
  const done = await $({ quiet: true, nothrow: true, timeout: "20s", input })`${argv}`;
  assert.equal(done.exitCode, 0, `${host}: ${command}: ${done.stderr}`);
  return done.stdout;
}

/** Everything that the hosts stack could have changed, of each host. */
function readback(): Promise<string[]> {
  const script = `
    cd /proc/sys
    grep -r . net vm kernel/numa_balancing kernel/nmi_watchdog kernel/timer_migration 2>/dev/null |
      grep -v -e conntrack_count -e route/flush -e vm/stat_refresh | sort
    grep . /sys/kernel/mm/transparent_hugepage/{enabled,defrag} /sys/kernel/mm/ksm/run
    ip -4 route show; ip -4 -oneline address show; ethtool -k data0
    dpkg-query --show; find /var/lib/ztbench; ls -A /run/systemd/system`;
  return Promise.all(testbed.hosts.map(({ name }) => on(name, "bash -s", script)));
}

/** A line of bash that prints a knob, by other commands than those that set it. */
function lookAt({ kind, target }: Knob): string {
  const [first = "", second = ""] = target.split(" ");
  switch (kind) {
    case "sysctl":
      return `sysctl -n ${target} | tr '\\t' ' '`;
    case "offload":
      return `ethtool -k ${first} | sed -n 's/^${second}: \\([a-z]*\\).*/\\1/p'`;
    case "route":
      return `ip -4 route show ${first} | sed -n 's/.* congctl \\([a-z]*\\).*/\\1/p'`;
    case "choice":
    case "file":
      return `cat ${target}`;
    case "each":
    case "mask":
      return `cat ${target} | tr -d , | sed 's/^0*\\(.\\)/\\1/' | sort -u`;
    case "timers":
      return `systemctl list-units --plain --no-legend --state=active ${target} |
        grep . || echo none`;
    case "qdisc":
    case "cpuset":
    case "memory":
    case "partition":
    case "irq":
    case "channels":
    case "ring":
    case "coalesce":
    case "pause":
    case "private":
    case "smt":
    case "latency":
    case "swap":
      throw new Error(`a lab has no knobs of kind ${kind} of its own`);
  }
}

/** How each knob of a host ended, by the outputs of the stack. */
async function endsOn(host: string): Promise<Record<string, string>> {
  const tuning = (await engine.output("hosts", "tuning")) as Record<string, Record<string, string>>;
  return tuning[host] ?? {};
}

async function reboot(host: string): Promise<void> {
  const bootId = () => on(host, "cat /proc/sys/kernel/random/boot_id");
  const first = await bootId();
  await on(host, "systemctl reboot").catch(() => undefined);
  const deadline = Date.now() + rebootSeconds * 1000;
  for (;;) {
    const now = await bootId().catch(() => first);
    if (now !== first) return;
    assert.ok(Date.now() < deadline, `${host} is not back after ${rebootSeconds} s`);
    await delay(100);
  }
}

test("up prepares every host, and up once more changes nothing", { skip }, async (t) => {
  const first = succeeded(await engine.run("up", "hosts", quickly));
  const second = succeeded(await engine.run("up", "hosts", quickly));
  assert.match(second.output, /\n {4}19 unchanged\n/);
  const preview = await engine.run("preview", "hosts", ["--expect-no-changes"]);
  assert.equal(preview.exitCode, 0, preview.output);
  t.diagnostic(`up ${first.seconds.toFixed(1)} s, again ${second.seconds.toFixed(1)} s`);
});

test(
  "up sets every knob that belongs to the host alone, as read from inside",
  { skip },
  async () => {
    for (const host of testbed.hosts) {
      const ends = await endsOn(host.name);
      const own = knobsOf(testbed, host).filter(
        ({ id, scope }) => scope !== "machine" && ends[id]?.startsWith("unsupported") !== true,
      );
      assert.ok(own.length > 15);
      const seen = await on(host.name, "bash -s", own.map(lookAt).join("\n"));
      assert.deepEqual(
        seen.trimEnd().split("\n"),
        own.map(({ want }) => want),
        host.name,
      );
    }
  },
);

test("knobs of the whole machine end with a reason and are left alone", { skip }, async () => {
  const all = await endsOn("server");
  const ends = knobsOf(testbed, hostNamed("server"))
    .filter(({ scope }) => scope === "machine")
    .map(({ id }) => all[id] ?? "missing");
  for (const end of ends) {
    assert.match(end, /^(already \S+|unsupported, .+|refused \S+, reaches the whole .*)$/);
  }
  assert.ok(ends.some((end) => end.startsWith("refused")));
});

test("the preflight tells wanted and seen, and what a lab does not have", { skip }, async () => {
  const told = (await engine.output("hosts", "preflight")) as Record<
    string,
    Record<string, string>
  >;
  for (const { name, nic } of testbed.hosts) {
    const of = told[name] ?? {};
    assert.equal(of["mtu"], "ok: 1500, wanted 1500");
    assert.equal(of["peers-beyond-mtu"], "ok: none, wanted none");
    assert.equal(of["foreign-owners"], "ok: none, wanted none");
    assert.equal(of["link-speed"], `not available here: ${nic} is no hardware`);
  }
});

test("what virtual links do not have is unsupported, by asking them", { skip }, async () => {
  const ends = await endsOn("server");
  for (const id of ["ring-rx", "coalesce-rx-usecs", "cqe-compress", "qdisc"]) {
    assert.match(ends[id] ?? "missing", /^unsupported, .*\w/);
  }
});

test("the readback holds right after up, and names what drifts", { skip }, async () => {
  const host = hostNamed("server");
  const verify = async () =>
    parseReadback(await on("server", "bash -s", renderVerify(testbed, host)));
  const held = await verify();
  assert.deepEqual(
    held.filter(({ status }) => status === "drifted" || status === "untuned"),
    [],
  );
  await on("server", "sysctl -q -w net.core.somaxconn=4242");
  const drifted = (await verify()).filter(({ status }) => status === "drifted");
  assert.deepEqual(drifted, [{ id: "net.core.somaxconn", status: "drifted", value: "4242" }]);
  await on("server", "sysctl -q -w net.core.somaxconn=32768");
});

test("neither state nor outputs hold a private key in the clear", { skip }, () => {
  assert.match(engine.stateText(), /BEGIN|ciphertext/);
  assert.doesNotMatch(engine.stateText(), /PRIVATE KEY/);
});

test("a held lease refuses a second topology and the end of the hosts", { skip }, async () => {
  const client = hostNamed("client");
  const lease = renderHostScript(renderLease(client, { owner: "test/b", stack: "baseline" }));
  await on("client", "bash -s create", lease);
  const tuned = await readback();
  for (const [verb, stack] of [
    ["up", "jwt"],
    ["destroy", "hosts"],
  ] as const) {
    const done = await engine.run(verb, stack, quickly);
    assert.notEqual(done.exitCode, 0);
    assert.match(done.output, /lease: hosts are taken, client is held by stack baseline since/);
    assert.match(done.output, /next: pulumi destroy -s baseline/);
    assert.doesNotMatch(done.output, /^ +at /m);
    assert.deepEqual(await readback(), tuned, `${verb} ${stack} changes nothing`);
  }
  await on("client", "bash -s remove", lease);
  await on("client", "bash -s", renderCampaignLease(client, "c-1", "take"));
  const done = await engine.run("destroy", "hosts", quickly);
  assert.match(done.output, /client is held by campaign c-1 since/);
  await on("client", "bash -s", renderCampaignLease(client, "c-1", "release"));
});

test(
  "destroy leaves a foreign change and restores all else, also after a reboot",
  { skip },
  async (t) => {
    await on("server", "sysctl -q -w net.core.somaxconn=4242");
    await reboot("gateway");
    const done = succeeded(await engine.run("destroy", "hosts", quickly));
    assert.match(
      done.output,
      /left net.core.somaxconn: foreign change, found 4242, set was 32768, before that 4096/,
    );
    assert.equal((await on("server", "sysctl -n net.core.somaxconn")).trim(), "4242");
    await on("server", "sysctl -q -w net.core.somaxconn=4096");
    assert.deepEqual(await readback(), pristine);
    t.diagnostic(`destroy ${done.seconds.toFixed(1)} s`);
  },
);

test("a lab raised anew counts as not prepared, and up prepares it anew", { skip }, async () => {
  succeeded(await engine.run("up", "hosts", quickly));
  await labDown(lab);
  testbed = (await labUp(lab)).testbed;
  engine.setTestbed(testbed);
  const stale = await engine.run("up", "jwt", quickly);
  assert.notEqual(stale.exitCode, 0);
  assert.match(
    stale.output,
    /hosts: not up, they were prepared in boot [0-9a-f]{16} of the lab, this is [0-9a-f]{16}/,
  );
  succeeded(await engine.run("up", "hosts", quickly));
  assert.equal((await on("server", "sysctl -n net.core.somaxconn")).trim(), "32768");
  succeeded(await engine.run("destroy", "hosts", quickly));
  assert.deepEqual(await readback(), pristine);
});

test("a topology without prepared hosts says how to prepare them", { skip }, async () => {
  const done = await engine.run("up", "jwt", quickly);
  assert.notEqual(done.exitCode, 0);
  assert.match(
    done.output,
    /hosts: not up, the stack has no outputs.*\[testbed\]\n +next: pulumi up -s hosts/,
  );
  assert.doesNotMatch(done.output, /^ +at /m);
});

test("an MTU that differs is refused before anything is changed", { skip }, async () => {
  await on("server", "ip link set data0 mtu 1400");
  const before = await readback();
  const done = await engine.run("up", "hosts", quickly);
  assert.notEqual(done.exitCode, 0);
  assert.match(done.output, /host server: mtu 1400, wanted 1500\n +next: .* ip link set data0 mtu/);
  assert.doesNotMatch(done.output, /host server: peers/);
  const after = await readback();
  assert.equal(after[2], before[2]);
  await on("server", "ip link set data0 mtu 1500");
  succeeded(await engine.run("destroy", "hosts", quickly));
  assert.deepEqual(await readback(), pristine);
});

test(
  "a testbed that is wrong is refused with the place, and nothing changes",
  { skip },
  async () => {
    const withClient = (changes: Record<string, unknown>) => ({
      ...testbed,
      hosts: testbed.hosts.map((host) => (host.role === "client" ? { ...host, ...changes } : host)),
    });
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [{ ...testbed, sheduling: "rr" }, /testbed\.json:1:\d+: sheduling: unknown key/],
      [{ ...testbed, hardware: {} }, /hardware: must be absent with class lab/],
      [
        withClient({ role: "server" }),
        /hosts\.\d\.role: role server is already held by hosts\[0\]/,
      ],
      [
        withClient({ identityFile: "/nowhere" }),
        /host client: identityFile cannot be read, found \/no/,
      ],
      [
        withClient({ managementPort: 9 }),
        /host client: unreachable at 198\.18\.22\.10:9, .* an SSH server expected \[testbed\]\n +next:/,
      ],
      [withClient({ hostKey: hostNamed("server").hostKey }), /host key/],
      [withClient({ nic: "nope0" }), /host client: nic nope0 is not there .*\n +next: correct nic/],
    ];
    for (const [document, message] of cases) {
      const wrong = openEngine(document as Testbed);
      try {
        await wrong.init("hosts");
        const done = await wrong.run("up", "hosts", quickly);
        assert.notEqual(done.exitCode, 0);
        assert.match(done.output, message);
        assert.doesNotMatch(done.output, /^ +at /m);
        // The last one got as far as a host.
        if (done.output.includes("nope0")) {
          succeeded(await wrong.run("destroy", "hosts", quickly));
        }
      } finally {
        wrong.close();
      }
    }
    assert.deepEqual(await readback(), pristine);
  },
);
