import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { diedUnits } from "../../../loadgen/unit-state.ts";
import { loadUnitName, startCommand, type TransientUnit } from "../../../loadgen/unit.ts";

const unit: TransientUnit = {
  name: "ztbench-load-0a-1.service",
  command: ["/bin/program", "-flag"],
  cpus: "2-3",
  scheduling: "rr",
  environment: { GOMAXPROCS: "2" },
  errorFile: "/run/log",
  type: "wait",
};

const common = "-p LimitNOFILE=1048576 -p CPUAccounting=yes -p StandardError=file:/run/log";
const realtime = "-p CPUSchedulingPolicy=rr -p CPUSchedulingPriority=10";
const grid: readonly [string, Partial<TransientUnit>, string][] = [
  [
    "pinned and real-time",
    {},
    `--wait -p CPUAffinity=2-3 ${realtime} ${common} -E NO_PROXY=* -E GOMAXPROCS=2`,
  ],
  [
    "neither",
    { cpus: "", scheduling: "other" },
    `--wait -p CPUSchedulingPolicy=other ${common} -E NO_PROXY=* -E GOMAXPROCS=2`,
  ],
  [
    "resident until stopped",
    { type: "notify", environment: {} },
    `--service-type=notify -p CPUAffinity=2-3 ${realtime} ${common} -E NO_PROXY=*`,
  ],
];

for (const [name, changes, words] of grid) {
  test(`starts a unit that is ${name}`, () => {
    assert.equal(
      startCommand({ ...unit, ...changes }).join(" "),
      `systemd-run --quiet --collect --unit=${unit.name} ${words} -- /bin/program -flag`,
    );
  });
}

test("gives every run of every campaign its own unit name", () => {
  const keys = fc.record({ token: fc.stringMatching(/^[0-9a-f]{8}$/), run: fc.nat() });
  fc.assert(
    fc.property(keys, keys, (a, b) => {
      const isSame = a.token === b.token && a.run === b.run;
      assert.equal(loadUnitName(a.token, a.run) === loadUnitName(b.token, b.run), isSame);
    }),
  );
});

const state = (id: string, fields: Record<string, string> = {}) =>
  Object.entries({ Id: id, ActiveState: "active", MainPID: "7", InvocationID: "aa", ...fields })
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");

const fates: readonly [string, string, string[]][] = [
  ["lives on", state("a.service"), []],
  ["failed", state("a.service", { ActiveState: "failed" }), ["a.service"]],
  ["is another process", state("a.service", { MainPID: "8" }), ["a.service"]],
  ["was started anew", state("a.service", { InvocationID: "bb" }), ["a.service"]],
  ["is gone", "", ["a.service"]],
];

for (const [name, after, died] of fates) {
  test(`tells whether a unit died that ${name}`, () => {
    const other = state("b.service");
    assert.deepEqual(diedUnits(`${state("a.service")}\n${other}`, `${after}\n${other}`), died);
  });
}
