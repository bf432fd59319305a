import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { suite, test } from "node:test";
import fc from "fast-check";
import { parseCpuList } from "../../../contracts/cpu-list.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { testbedSchema } from "../../../contracts/testbed.ts";
import { articleCounts, planCpus } from "../../../hosts/cpu-plan.ts";
import { layoutWarnings } from "../../../hosts/cpus.ts";
import { type CpuPlace, parseLscpu } from "../../../hosts/lscpu.ts";

type Shape = { sockets: number; cores: number; threads: number };

/** CPUs go round the sockets, and second threads come after all first ones. */
function machine({ sockets, cores, threads }: Shape): CpuPlace[] {
  const first = sockets * cores;
  return Array.from({ length: first * threads }, (_, cpu) => ({
    cpu,
    node: cpu % sockets,
    socket: cpu % sockets,
    core: Math.floor((cpu % first) / sockets),
  }));
}

/** As lscpu prints it. */
const printed = (cpus: readonly CpuPlace[]) => JSON.stringify({ cpus }, null, 3);

suite("the plan of a host with two sockets of 24 cores", () => {
  const rack = machine({ sockets: 2, cores: 24, threads: 2 });

  test("is that of the example rack: eight CPUs for the service, all on the NIC's node", () => {
    const file = path.resolve(import.meta.dirname, "../../../testbeds/rack.example.yaml");
    const example = parseDocument(testbedSchema, readFileSync(file, "utf8"), file);
    const { layout } = planCpus(rack, 0);
    const sets = (of: typeof layout) => Object.values(of).map((list) => parseCpuList(list));
    assert.deepEqual(sets(layout), sets(example.hosts[0]?.cpus ?? layout));
    assert.equal(parseCpuList(layout.service).length, 8);
  });

  test("follows the NIC to the other node", () => {
    const { layout } = planCpus(rack, 1);
    const { system, ...measured } = layout;
    assert.ok(parseCpuList(system).every((cpu) => cpu % 2 === 0));
    assert.ok(
      Object.values(measured)
        .flatMap(parseCpuList)
        .every((cpu) => cpu % 2 === 1),
    );
  });

  test("leaves second threads and spare cores idle", () => {
    const idle = parseCpuList(planCpus(rack, 0).idle);
    assert.equal(idle.length, 96 - 22 - 4);
    for (let cpu = 48; cpu < 96; cpu++) assert.ok(idle.includes(cpu));
  });
});

suite("the plan of a small host", () => {
  const expected: readonly (readonly [number, string, string, string, string, string])[] = [
    [1, "0", "0", "0", "0", "0"],
    [2, "0", "0", "0", "1", "1"],
    [3, "0", "0", "0", "1", "2"],
    [4, "0", "0", "1", "2", "3"],
    [5, "0", "1", "2", "3", "4"],
    [8, "0", "1", "2-3", "4", "5-7"],
    [16, "0-1", "2-3", "4-7", "8-10", "11-15"],
  ];
  for (const [cores, system, irq, load, proxy, service] of expected) {
    test(`with ${cores} cores gives what there is to the service last`, () => {
      const { layout } = planCpus(machine({ sockets: 1, cores, threads: 1 }), -1);
      assert.deepEqual(layout, { system, irq, load, proxy, service });
    });
  }

  test("warns of sets that share where there are fewer than five", () => {
    const of = (cores: number) =>
      layoutWarnings({
        name: "small",
        cpus: planCpus(machine({ sockets: 1, cores, threads: 2 }), -1).layout,
      });
    assert.ok(of(2).length > 0);
    assert.deepEqual(of(5), []);
  });
});

test("a plan never gives a CPU of another node, a second thread or more than wanted", () => {
  const shapes = fc.record({
    sockets: fc.integer({ min: 1, max: 4 }),
    cores: fc.integer({ min: 4, max: 40 }),
    threads: fc.integer({ min: 1, max: 2 }),
  });
  fc.assert(
    fc.property(shapes, fc.nat(3), (shape, number) => {
      const node = number % shape.sockets;
      const { layout } = planCpus(machine(shape), node);
      for (const name of ["irq", "load", "proxy", "service"] as const) {
        const cpus = parseCpuList(layout[name]);
        assert.ok(cpus.length >= 1 && cpus.length <= articleCounts[name]);
        for (const cpu of cpus) {
          assert.equal(cpu % shape.sockets, node);
          assert.ok(cpu < shape.sockets * shape.cores);
        }
      }
    }),
  );
});

test("a node without CPUs is refused with those that there are", () => {
  assert.throws(
    () => planCpus(machine({ sockets: 2, cores: 4, threads: 1 }), 7),
    (error) => error instanceof Failure && error.message.includes("found 7, allowed are 0, 1"),
  );
});

suite("what lscpu prints", () => {
  const cpus = machine({ sockets: 2, cores: 3, threads: 2 });

  test("is read as the CPUs that it lists", () => {
    assert.deepEqual(parseLscpu(printed(cpus)), cpus);
  });

  test("may hold numbers as text, as older versions print them", () => {
    const text = printed(cpus).replaceAll(/: (\d+)/g, ': "$1"');
    assert.deepEqual(parseLscpu(text), cpus);
  });

  test("is read without CPUs that are offline, which have no core", () => {
    const offline = [...cpus, { cpu: 99, node: null, socket: null, core: null }];
    assert.deepEqual(parseLscpu(JSON.stringify({ cpus: offline })), cpus);
  });

  test("is refused when it is something else", () => {
    for (const text of ["", "CPU NODE\n0 0", "{}", '{"cpus":[]}', '{"cpus":[{"cpu":"x"}]}']) {
      assert.throws(() => parseLscpu(text), Failure, text);
    }
  });
});
