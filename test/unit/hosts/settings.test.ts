import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { suite, test } from "node:test";
import { checksOf } from "../../../hosts/checks.ts";
import type { Knob, KnobKind } from "../../../hosts/knobs.ts";
import { knobsOf } from "../../../hosts/profiles.ts";
import { shellPart } from "../../../hosts/shell.ts";
import { exampleHost, exampleTestbed } from "./testbed.ts";

const page = path.join(import.meta.dirname, "../../../docs/how-to/bare-metal.md");

/** By which command or file a kind is read; undefined: by the file that its target names. */
const readbacks: Readonly<Record<KnobKind, string | undefined>> = {
  sysctl: "sysctl",
  route: "ip -4 route show",
  qdisc: "tc qdisc show dev NIC",
  channels: "ethtool -l",
  ring: "ethtool -g",
  coalesce: "ethtool -c",
  offload: "ethtool -k",
  private: "ethtool --show-priv-flags",
  pause: "ethtool -a",
  irq: "smp_affinity_list",
  latency: "/dev/cpu_dma_latency",
  swap: "/proc/swaps",
  memory: "cpuset.mems",
  cpuset: "cpuset.cpus",
  partition: "cpuset.cpus.partition",
  timers: "systemctl show",
  choice: undefined,
  file: undefined,
  each: undefined,
  mask: undefined,
  smt: undefined,
};

type Row = {
  readonly setting: string;
  readonly knobs: string;
  readonly scope: string;
  readonly readback: string;
};

const words = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);

function rowsOf(text: string): Row[] {
  const section = text.split("\n## Settings\n")[1] ?? "";
  return section
    .split("\n")
    .filter((line) => /^\| (?!setting |-)/.test(line))
    .map((line) => {
      const [, setting = "", knobs = "", scope = "", readback = ""] = line
        .split("|")
        .map((cell) => cell.trim());
      return { setting, knobs, scope, readback };
    });
}

suite("the table of settings", () => {
  const testbed = exampleTestbed();
  const cpus = { system: "0", irq: "1-2", load: "3", proxy: "4", service: "5" };
  const host = { ...exampleHost(testbed), cpus };
  const rows = rowsOf(readFileSync(page, "utf8"));
  const nameOf = ({ id }: Knob) => id.replace(/^(irq|xps)-\d+$/, "$1-N");
  const byName = new Map(knobsOf(testbed, host).map((knob) => [nameOf(knob), knob]));

  test("names every knob of `repro` once, and no other", () => {
    const named = rows.filter(({ scope }) => scope !== "–").flatMap(({ knobs }) => words(knobs));
    assert.deepEqual(named.toSorted(), [...byName.keys()].toSorted());
  });

  test("tells the scope of each knob, and how it is read", () => {
    for (const { setting, knobs, scope, readback } of rows) {
      if (scope === "–") continue;
      for (const name of words(knobs)) {
        const knob = byName.get(name);
        assert.ok(knob, name);
        assert.equal(scope, knob.scope, name);
        const read = readbacks[knob.kind] ?? path.basename(knob.target);
        assert.ok(words(readback).includes(read), `${setting}: ${name} is read by ${read}`);
      }
    }
  });

  test("names a fact or a check that is there wherever there is no knob", () => {
    const checks = new Set(checksOf(testbed, host).map(({ id }) => id));
    const facts = new Set(
      [...shellPart("facts").matchAll(/^ +(?:fact|fact_of|each_file) ([a-z-]+) /gm)].map(
        ([, name]) => name,
      ),
    );
    const without = rows.filter(({ scope }) => scope === "–");
    assert.ok(without.some(({ readback }) => readback === "`nic-fec`"));
    for (const { setting, knobs, readback } of without) {
      const known = knobs.startsWith("recorded") ? facts : checks;
      for (const name of words(readback)) assert.ok(known.has(name), `${setting}: ${name}`);
    }
  });
});
