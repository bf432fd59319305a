import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { numberOf } from "../../../analysis/cell.ts";
import { CsvResults } from "../../../analysis/vegeta/csv.ts";
import { JsonResults } from "../../../analysis/vegeta/json.ts";
import { type Reading, readFiles } from "../../../analysis/vegeta/reading.ts";
import { openResults } from "../../../analysis/vegeta/source.ts";
import { renderReading } from "../../../analysis/vegeta/text.ts";
import { Failure } from "../../../contracts/failure.ts";
import { seeded } from "../../support/bundle.ts";
import { attack, beganNs, cappedAttack, csvOf, jsonOf, type Result } from "../../support/vegeta.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-read-"));
});
after(() => rm(directory, { recursive: true }));

const rateQps = 1000;
const intervalNs = 1_000_000;

async function read(
  files: readonly (string | Buffer)[],
  durationSeconds?: number,
): Promise<Reading> {
  const opened = [];
  for (const [index, content] of files.entries()) {
    const file = path.join(directory, `results.${index}`);
    await writeFile(file, content);
    opened.push(await openResults(file, `results.${index}`));
  }
  const decodeGob = () => assert.fail("no gob in this test");
  return readFiles(opened, { rateQps, durationSeconds, decodeGob });
}

function assertNear(cell: Reading["response"]["meanNs"], expectedNs: number): void {
  const found = numberOf(cell) ?? Number.NaN;
  assert.ok(Math.abs(found - expectedNs) <= expectedNs * 1e-3, `${found}, not ${expectedNs}`);
}

test("an attack on time has its latency at every quantile, and no lag", async () => {
  const { response, service, lag, counts, verdict } = await read(
    [csvOf(attack(200_000, 1e6))],
    200,
  );
  for (const name of ["p50", "p90", "p99", "p99.9", "max"] as const) {
    assertNear(response.quantiles[name], 200_000);
    assertNear(service.quantiles[name], 200_000);
    assert.equal(numberOf(lag.quantiles[name]), 0);
  }
  assert.deepEqual(counts, {
    planned: 200_000,
    sent: 200_000,
    ok: 200_000,
    failed: 0,
    timedOut: 0,
    unsent: 0,
    outside: 0,
  });
  assert.equal(verdict, "VALID");
});

test("CSV and JSON of the same attack read alike, in any order of rows", async () => {
  const random = seeded(5);
  const results = attack(20_000, intervalNs, (seq) => ({
    sentNs: (seq + 1) * intervalNs + (seq === 40 ? 0 : Math.floor(random() * 30_000)),
    latencyNs: Math.floor(random() * 3e6),
    ...(seq % 700 === 3 && { code: 503, error: '503 "no, not\nnow"' }),
  }));
  const shuffled = results.map((r) => ({ r, key: r.seq + random() * 300 }));
  shuffled.sort((a, b) => a.key - b.key);
  const plain = await read([csvOf(results)]);
  const same = { ...plain, files: [] };
  assert.deepEqual({ ...(await read([jsonOf(results)])), files: [] }, same);
  assert.deepEqual({ ...(await read([csvOf(shuffled.map(({ r }) => r))])), files: [] }, same);
  assert.deepEqual(plain.files[0]?.codes, { "200": 19_971, "503": 29 });
  assert.equal(plain.files[0].startNs, String(beganNs + BigInt(intervalNs)));
});

test("failed, timed-out and unsent requests rank above all answers", async () => {
  const error = 'Get "http://198.18.0.12:8080/api/echo": context deadline exceeded';
  const results = attack(20_000, intervalNs, (seq) =>
    seq % 100 === 7 ? { code: 0, latencyNs: 5e9, error } : {},
  );
  const { response, service, counts } = await read([csvOf(results.slice(0, 19_900))], 20);
  assert.deepEqual(
    [counts.sent, counts.failed, counts.timedOut, counts.unsent],
    [19_900, 199, 199, 100],
  );
  for (const { quantiles } of [response, service]) {
    assertNear(quantiles.p90, 200_000);
    assert.deepEqual(quantiles.p99, {
      kind: "none",
      reason: "> timeout: request 19800 of 20000, but 19701 were answered",
    });
    assert.equal(quantiles.max.kind, "none");
  }
  const text = renderReading(await read([csvOf(results.slice(0, 19_900))], 20));
  assert.match(text, /^response +0\.200 +0\.200 +none +none +none +0\.200 +19701$/m);
  assert.match(text, /failed 199 \(199 timed out\), unsent 100$/m);
  assert.match(text, /^none: p99\.9: too few requests for p99\.9$/m);
});

test("a gap in the sequence is unsent even without a duration", async () => {
  const { counts, notes } = await read([csvOf(attack(5000, 1e6).filter(({ seq }) => seq !== 77))]);
  assert.deepEqual([counts.planned, counts.unsent], [5000, 1]);
  assert.match(notes[1] ?? "", /^without --duration the highest sequence number counts/);
});

test("response tells a stall that a driver with too few workers hides, which is refused", async () => {
  const { response, service, lag, problems, verdict } = await read([
    csvOf(cappedAttack(40_000, intervalNs, 4)),
  ]);
  // With a stall of s every P, quantile q of the response is s - (1 - q) P.
  assert.ok(Math.abs((numberOf(response.quantiles.p99) ?? 0) - 0.92e9) < 0.03e9);
  assert.ok((numberOf(service.quantiles.p99) ?? 1e9) < 1e6);
  assert.ok((numberOf(lag.quantiles.p99) ?? 0) > 0.8e9);
  assert.equal(verdict, "INVALID");
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? "", /^results\.0: workers: the driver waited .* with 4 requests in/);
});

test("a driver that is late for want of CPU is not taken for one without workers", async () => {
  const random = seeded(11);
  // Ten times it gets no CPU for 200 ms, then sends at once what was due.
  const results = attack(20_000, intervalNs, (seq) => {
    const dueNs = (seq + 1) * intervalNs;
    const pausedNs = dueNs % 2e9 < 0.2e9 ? 0.2e9 - (dueNs % 2e9) : 0;
    return { sentNs: dueNs + pausedNs, latencyNs: Math.floor(random() * 4e6) };
  });
  assert.deepEqual((await read([csvOf(results)])).problems, []);
});

test("a stall that all requests wait out in flight is no want of workers", async () => {
  const results = attack(30_000, intervalNs, (seq) => {
    const intoNs = ((seq + 1) * intervalNs) % 10e9;
    return intoNs < 1e9 ? { latencyNs: 1e9 - intoNs } : {};
  });
  assert.deepEqual((await read([csvOf(results)])).problems, []);
});

test("processes are merged over their common time, each from its own start", async () => {
  const shift = 300_000_000;
  const one = attack(10_000, intervalNs, () => ({ latencyNs: 100_000 }));
  const two = attack(10_000, intervalNs, (seq) => ({
    sentNs: (seq + 1) * intervalNs + shift,
    latencyNs: 400_000,
  }));
  for (const duration of [10, undefined]) {
    const { counts, response, lag, files } = await read([csvOf(one), jsonOf(two)], duration);
    assert.deepEqual(
      [counts.planned, counts.sent, counts.unsent, counts.outside],
      [19_400, 19_400, 0, 600],
    );
    assertNear(response.quantiles.p50, 100_000);
    assertNear(response.quantiles.p90, 400_000);
    assertNear(response.meanNs, 250_000);
    assert.equal(numberOf(lag.quantiles.max), 0);
    assert.deepEqual(
      files.map(({ format, planned }) => [format, planned]),
      [
        ["csv", 10_000],
        ["json", 10_000],
      ],
    );
  }
});

test("processes that did not run together are refused", async () => {
  const later = (ns: number) =>
    csvOf(attack(5000, intervalNs, (seq) => ({ sentNs: (seq + 1) * intervalNs + ns })));
  await assert.rejects(read([later(0), later(1_000_000_000)], 5), (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.equal(error.code, "document");
    assert.match(
      error.message,
      /^results\.1: start: must be less than 1 s after .*found 1\.000 s$/,
    );
    return true;
  });
  assert.equal((await read([later(0), later(999_000_000)], 5)).counts.planned, 8002);
});

test("a clock that steps inside a run is found, forward and back", async () => {
  for (const [step, expected] of [
    [50e6, /^results\.0: clock: stepped forward by 50\.0 ms in second 11: /],
    [-50e6, /^results\.0: clock: requests of second 10 left 50\.0 ms before they were due: /],
  ] as const) {
    const results = attack(20_000, intervalNs, (seq) => ({
      sentNs: (seq + 1) * intervalNs + (seq < 10_500 ? 0 : step),
    }));
    const { problems, verdict } = await read([csvOf(results)]);
    assert.match(problems[0] ?? "", expected);
    assert.equal(verdict, "INVALID");
  }
});

test("a driver that falls behind for seconds and catches up has no step of its clock", async () => {
  const results = attack(20_000, intervalNs, (seq) => {
    const dueNs = (seq + 1) * intervalNs;
    // From the fifth second to the ninth it is late by more and more, then ever less.
    const lagNs = Math.max(0, 0.1e9 - Math.abs(dueNs - 9e9) * 0.025);
    return { sentNs: Math.round(dueNs + lagNs) };
  });
  const problems = (await read([csvOf(results)])).problems.filter((p) => p.includes("clock"));
  assert.deepEqual(problems, []);
});

const fields = fc.record({
  sentNs: fc.integer({ min: 0, max: 2 ** 40 }),
  latencyNs: fc.integer({ min: 0, max: 2 ** 40 }),
  code: fc.constantFrom(0, 200, 204, 503),
  error: fc.constantFrom("", "", "dial tcp", 'a "quoted", one', "two\nlines", "\n", "é\r\n,"),
});

test("rows come out as they went in, wherever the bytes are cut", () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 });
  const rows = fc.array(fields, { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(rows, cuts, fc.boolean(), (generated, lengths, isJson) => {
      const sent = generated.map((row, seq) => ({ seq, attack: 'x,"y"', ...row }));
      const seen: Result[] = [];
      const sink = (seq: number, sentNs: number, latencyNs: number) => {
        seen.push({ seq, sentNs: sentNs - 123_456_789, latencyNs });
        return undefined;
      };
      const origin = { seconds: 1_790_000_000 };
      const parser = isJson
        ? new JsonResults("results", sink, origin)
        : new CsvResults("results", sink, origin);
      const bytes = Buffer.from(isJson ? jsonOf(sent) : csvOf(sent));
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const length = lengths[i % lengths.length] ?? 1;
        parser.push(bytes.subarray(at, at + length));
        at += length;
      }
      parser.end();
      assert.deepEqual(
        seen,
        sent.map(({ seq, sentNs, latencyNs }) => ({ seq, sentNs, latencyNs })),
      );
      const { attack: name, rows: count, failed } = parser.totals();
      assert.deepEqual([name, count], ['x,"y"', sent.length]);
      assert.equal(
        failed,
        sent.filter(({ code, error }) => code < 200 || code > 299 || error).length,
      );
    }),
    { numRuns: 200 },
  );
});

const [good = "", second = ""] = csvOf(attack(2, intervalNs)).split(/(?<=\n)/);
const json = jsonOf(attack(1, intervalNs));
const bad: readonly (readonly [string, string | Buffer, RegExp])[] = [
  ["nothing", "", /^results\.0:1: is empty, must hold results of vegeta$/],
  ["a gzip", gzipSync(good), /^results\.0:1: is compressed, must be gob, CSV or JSON$/],
  [
    "other bytes",
    "\u0000\u0001\u0002",
    /^results\.0:1: must be vegeta's gob, CSV or JSON, found a/,
  ],
  ["the rows of a bundle", "seq,timestampNs\n", /found a file that begins with "seq,timest/],
  ["a negative latency", good.replace(",200000,", ",-5,"), /^results\.0:1: latency: .*found "-5,/],
  ["a fraction", good.replace(",200000,", ",1.5,"), /^results\.0:1: latency: must be a whole/],
  ["a time in seconds", good.replace(/^(\d{10})\d{9}/, "$1"), /:1: timestamp: .* of 19 digits/],
  ["a number that comes twice", good + second + second, /:3: seq: must be each number once, found/],
  ["a number beyond reason", good.replace(",0,GET", ",999999999,GET"), /:1: seq: .*360000000/],
  ["two attacks", good + second.replace(",,1,GET", ",b,1,GET"), /:2: attack: .*"" and "b"$/],
  ["a column too few", good.replace(",GET", ""), /:1: url: must be followed by further fields/],
  ["a column too many", good.replace(",\n", ",,\n"), /:1: headers: must be a quoted field/],
  ["a stray quote", good.replace("256,,", '256,a"b,'), /:1: error: must be a quoted field/],
  ["an open quote", good.replace("256,,", '256,"a,'), /:1: row: must be a line end after the last/],
  ["a row that is cut off", good + second.slice(0, 60), /:2: row: must be a line end after the/],
  ["an endless error", good.replace("256,,", `256,${"x".repeat(70_000)},`), /:1: error: .*65536/],
  ["no JSON", `${json}{"seq": nonsense}\n`, /:2: line: must be a JSON object, found/],
  ["JSON without its number", json.replace('"seq":0,', ""), /:1: seq: .* 0 to \d+, found nothing$/],
  ["JSON with a fraction", json.replace('"latency":2', '"latency":0.2'), /:1: latency: must be a/],
  ["JSON without a time", json.replace("T", " "), /:1: timestamp: must be an instant of RFC 3339/],
  ["JSON on the 31st of June", json.replace(/"\d{4}-\d\d-\d\d/, '"2026-13-31'), /:1: timestamp: /],
  [
    "JSON that is cut off",
    json + json.slice(0, 50),
    /:2: line: must be a whole result with a line/,
  ],
  ["only its middle", csvOf(attack(9000, 1e6).slice(4000)), /:1: must begin with requests of its/],
];
for (const [what, content, message] of bad) {
  test(`${what} is refused with file and line`, async () => {
    await assert.rejects(read([content]), (error: unknown) => {
      assert.ok(error instanceof Failure, String(error));
      assert.equal(error.code, "document");
      assert.match(error.message, message);
      return true;
    });
  });
}

test("lines are counted through line ends in errors", async () => {
  const torn = good.replace("256,,", '256,"one\ntwo\nthree",') + second.replace(",200,", ",2x0,");
  await assert.rejects(read([torn]), /^Failure: results\.0:4: code: must be a whole number/);
});

test("more requests than rate and duration plan are refused", async () => {
  const message = /seq: must be below the 1000 that --rate and --duration plan, found 1999$/;
  await assert.rejects(read([csvOf(attack(2000, intervalNs))], 1), message);
});
