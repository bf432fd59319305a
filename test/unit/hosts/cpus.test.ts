import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { suite, test } from "node:test";
import fc from "fast-check";
import { formatCpuList, parseCpuList, threadsOf } from "../../../contracts/cpu-list.ts";
import { parseDocument } from "../../../contracts/document.ts";
import { Failure } from "../../../contracts/failure.ts";
import { cpuListSchema, testbedSchema } from "../../../contracts/testbed.ts";
import { layoutWarnings, sharedCpus } from "../../../hosts/cpus.ts";

const cpuSets = fc.uniqueArray(fc.nat(4095), { maxLength: 200 });
const ascending = (cpus: readonly number[]) => [...cpus].sort((a, b) => a - b);

suite("CPU lists", () => {
  test("come back from text as the set they were", () => {
    fc.assert(
      fc.property(cpuSets, (cpus) => {
        assert.deepEqual(parseCpuList(formatCpuList(cpus)), ascending(cpus));
      }),
    );
  });

  test("are written in the form that testbed documents take", () => {
    fc.assert(fc.property(cpuSets, (cpus) => cpuListSchema.safeParse(formatCpuList(cpus)).success));
  });

  test("are written as short as can be", () => {
    assert.equal(formatCpuList([5, 4, 7, 0, 6, 9, 9]), "0,4-7,9");
    assert.equal(formatCpuList([]), "");
  });

  test("share exactly what is in both", () => {
    fc.assert(
      fc.property(cpuSets, cpuSets, (a, b) => {
        const expected = ascending(a.filter((cpu) => b.includes(cpu)));
        assert.deepEqual(sharedCpus(formatCpuList(a), formatCpuList(b)), expected);
      }),
    );
  });

  test("that run backwards, repeat commas or are absurdly long are refused", () => {
    for (const text of ["3-1", "1,,2", "a", "0-", "-1", "0-99999999", " 1"]) {
      assert.throws(() => parseCpuList(text), Failure, text);
    }
  });

  test("give a program as many threads as they have CPUs, and none when empty", () => {
    assert.equal(threadsOf("2-5,8"), 5);
    assert.equal(threadsOf("1,1"), 1);
    assert.equal(threadsOf(""), undefined);
  });
});

suite("CPU layout of a host", () => {
  const cpus = { system: "", irq: "", load: "0", proxy: "1", service: "1" };

  test("is warned about where sets share a CPU", () => {
    const warnings = layoutWarnings({ name: "server", cpus });
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ["host server: proxy and service share CPU 1, separate sets are better"],
    );
  });

  test("is warned about for every pair of rivals", () => {
    const one = { system: "0", irq: "0", load: "0", proxy: "0", service: "0" };
    assert.equal(layoutWarnings({ name: "one", cpus: one }).length, 9);
  });

  test("of the example rack is free of warnings", () => {
    const file = path.resolve(import.meta.dirname, "../../../testbeds/rack.example.yaml");
    const rack = parseDocument(testbedSchema, readFileSync(file, "utf8"), file);
    assert.equal(rack.hosts.length, 3);
    assert.deepEqual(rack.hosts.flatMap(layoutWarnings), []);
  });
});
