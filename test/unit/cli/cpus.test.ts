import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, suite, test } from "node:test";
import { cpus } from "../../../cli/cpus.ts";
import { Failure } from "../../../contracts/failure.ts";

const scratch = mkdtempSync(path.join(tmpdir(), "ztbench-cpus-"));
after(() => {
  rmSync(scratch, { recursive: true });
});

/** As lscpu prints four cores of one socket. */
const file = path.join(scratch, "lscpu.json");
writeFileSync(
  file,
  JSON.stringify({ cpus: [0, 1, 2, 3].map((cpu) => ({ cpu, node: 0, socket: 0, core: cpu })) }),
);

async function run(...argv: string[]) {
  const printed: string[] = [];
  const said: string[] = [];
  const io = {
    print: (text: string) => printed.push(text),
    say: (line: string) => said.push(line),
    signal: new AbortController().signal,
  };
  assert.equal(await cpus.run(argv, io), 0);
  return { printed: printed.join("\n"), said: said.join("\n") };
}

suite("./ztbench cpus", () => {
  test("prints what goes into the testbed document, and warns of sets that share", async () => {
    const { printed, said } = await run(file);
    assert.equal(
      printed,
      'cpus:\n  system: "0"\n  irq: "0"\n  load: "1"\n  proxy: "2"\n  service: "3"',
    );
    assert.match(said, /^idle: none$/m);
    assert.doesNotMatch(said, /share/);
  });

  test("prints the same as JSON", async () => {
    const { printed } = await run(file, "--json");
    const layout = { system: "0", irq: "0", load: "1", proxy: "2", service: "3" };
    assert.deepEqual(JSON.parse(printed), { layout, idle: "" });
  });

  const refused: readonly (readonly [string, string[], RegExp])[] = [
    ["a file that is not there", ["/nowhere"], /^file: cannot be read, found \/nowhere/],
    ["a node that has no CPUs", [file, "--nic-node", "3"], /^NIC node: it has no CPUs, found 3/],
    ["a node that is no number", [file, "--nic-node", "a"], /^--nic-node: not usable, found "a"/],
    ["a service without CPUs", [file, "--service", "0"], /^--service: not usable, found "0"/],
    ["output of something else", [import.meta.filename], /^lscpu: output is not understood/],
  ];
  for (const [name, argv, message] of refused) {
    test(`refuses ${name}`, async () => {
      const failed = async () => run(...argv);
      await assert.rejects(
        failed,
        (error) => error instanceof Failure && message.test(error.message),
      );
    });
  }
});
