import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { $ } from "zx";
import { readFiles } from "../../../analysis/vegeta/reading.ts";
import { openResults } from "../../../analysis/vegeta/source.ts";
import { gobDecoder } from "../../../cli/gob.ts";
import { findGo, goEnvironment } from "../../../tools/toolchain.ts";
import { attack, cappedAttack, csvOf } from "../../support/vegeta.ts";

const root = path.resolve(import.meta.dirname, "../../..");
let directory: string;
let ztload: string;
let vegeta: string;
const at = (file: string) => path.join(directory, file);

before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-read-verb-"));
  ztload = at("ztload");
  vegeta = at("vegeta");
  const go = await findGo();
  const spawn = $({ quiet: true, env: goEnvironment(), timeout: "300s" });
  await spawn`${go.command} -C ${path.join(root, "service")} build -o ${ztload} ./cmd/ztload`;
  const module = path.join(root, "tools/go/vegeta");
  await spawn`${go.command} -C ${module} build -o ${vegeta} github.com/tsenart/vegeta/v12`;
  const results = attack(3000, 1_000_000, (seq) => ({
    sentNs: (seq + 1) * 1_000_000 + ((seq * 37) % 5000),
    latencyNs: 100_000 + seq * 10,
    attack: "night, one",
    ...(seq % 50 === 9 && { code: 0, error: 'Get "http://a": dial tcp, "refused"\nagain' }),
  }));
  await writeFile(at("results.csv"), csvOf(results));
  await spawn`${vegeta} encode -to gob -output ${at("results.gob")} ${at("results.csv")}`;
  await spawn`${vegeta} encode -to json -output ${at("results.json")} ${at("results.csv")}`;
});
after(() => rm(directory, { recursive: true }));

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

function ztbench(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(path.join(root, "ztbench"), ["read", ...args], (_, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

const options = () => ({ rateQps: 1000, durationSeconds: 3, decodeGob: gobDecoder(ztload) });

test("what vegeta encodes as gob, CSV and JSON reads alike", async () => {
  const readings = [];
  for (const format of ["gob", "csv", "json"]) {
    const file = await openResults(at(`results.${format}`), format);
    assert.equal(file.format, format);
    const reading = await readFiles([file], options());
    const [only] = reading.files;
    readings.push({ ...reading, files: [{ ...only, name: "", format: "" }] });
  }
  assert.deepEqual(readings[0], readings[1]);
  assert.deepEqual(readings[2], readings[1]);
  assert.deepEqual([readings[0]?.counts.ok, readings[0]?.counts.failed], [2940, 60]);
});

test("gob records that break off are refused with file and record", async () => {
  const whole = await readFile(at("results.gob"));
  await writeFile(at("cut.gob"), whole.subarray(0, whole.length - 20));
  const file = await openResults(at("cut.gob"), "cut.gob");
  const message = /^Failure: cut\.gob: broken or cut off: record 3000, which begins at byte \d+, /;
  await assert.rejects(readFiles([file], options()), message);
  await writeFile(at("head.gob"), whole.subarray(0, 100));
  const head = await openResults(at("head.gob"), "head.gob");
  await assert.rejects(readFiles([head], options()), /^Failure: head\.gob: broken or cut off/);
});

test("gob without its decoder, or with an older one, says what to do", async () => {
  const file = await openResults(at("results.gob"), "results.gob");
  const without = { ...options(), decodeGob: gobDecoder(at("nowhere")) };
  await assert.rejects(
    readFiles([file], without),
    /gob needs ztload to be decoded, not installed$/,
  );
  await writeFile(at("old"), '#!/bin/sh\necho "ztload: command: unknown" >&2\nexit 2\n', {
    mode: 0o755,
  });
  const older = { ...options(), decodeGob: gobDecoder(at("old")) };
  await assert.rejects(readFiles([file], older), /old: is older than this checkout: command: unk/);
});

test("the verb prints a table, and the same as JSON", async () => {
  const text = await ztbench(at("results.csv"), "--rate", "1000", "--duration", "3s");
  assert.equal(text.code, 0, text.stderr);
  assert.match(text.stdout, /^planned 3000, sent 3000, answered 2940, failed 60 \(0 timed/m);
  assert.match(text.stdout, /^response +0\.\d{3} +0\.\d{3} +none +none +none +0\.\d{3} +2940$/m);
  const json = await ztbench(at("results.csv"), "--rate", "1000/1s", "--duration", "3", "--json");
  const reading = JSON.parse(json.stdout) as { schema: string; counts: { ok: number } };
  assert.deepEqual([reading.schema, reading.counts.ok], ["ztbench/read/1", 2940]);
});

test("figures of a driver that waited for workers are shown, but end with exit code 3", async () => {
  await writeFile(at("capped.csv"), csvOf(cappedAttack(20_000, 1_000_000, 4)));
  const { code, stdout, stderr } = await ztbench(at("capped.csv"), "--rate", "1000");
  assert.equal(code, 3);
  assert.match(stdout, /^INVALID: .*capped\.csv: workers: the driver waited for a free one from/m);
  assert.match(stderr, /^ztbench: .*capped\.csv: workers: the driver waited/);
});

const refused: readonly (readonly [string[], number, RegExp])[] = [
  [[], 2, /arguments: 0 given, 1 to 256 wanted/],
  [["results.csv"], 2, /--rate: missing, a whole number of requests per second, 1 to 1000000\n/],
  [["results.csv", "--rate", "0"], 2, /--rate: "0", wanted a whole number/],
  [["results.csv", "--rate", "1e3"], 2, /--rate: "1e3", wanted a whole number/],
  [["results.csv", "--rate", "9", "--duration", "-1s"], 2, /--duration' argument is ambiguous/],
  [["results.csv", "--rate", "9", "--duration", "5 days"], 2, /--duration: "5 days", wanted more/],
  [["results.csv", "results.csv", "--rate", "9"], 2, /results\.csv is given twice, once wanted/],
  [["nowhere.csv", "--rate", "9"], 3, /nowhere\.csv: cannot be read, ENOENT/],
  [["/dev/zero", "--rate", "9"], 3, /\/dev\/zero: must be a plain file/],
];
for (const [args, code, expected] of refused) {
  test(`\`ztbench read ${args.join(" ")}\` ends with exit code ${code}`, async () => {
    const ended = await ztbench(...args.map((a) => (a.startsWith("results") ? at(a) : a)));
    assert.match(ended.stderr, expected);
    assert.equal(ended.code, code);
    assert.doesNotMatch(ended.stderr, /^\s+at /m);
  });
}
