import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { Failure } from "../../../contracts/failure.ts";
import { readRequests } from "../../../analysis/requests.ts";
import { renderRows, type Row, startNs } from "../../support/bundle.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "ztbench-requests-"));
});
after(() => rm(directory, { recursive: true }));

async function read(bytes: Buffer, planned = 1000) {
  const file = path.join(directory, "requests.csv.gz");
  await writeFile(file, bytes);
  const rows: Row[] = [];
  const oks: boolean[] = [];
  const source = { path: file, name: "requests.csv.gz", originNs: String(startNs), planned };
  const totals = await readRequests(source, (seq, sentNs, latencyNs, ok) => {
    rows.push({ seq, sentNs, latencyNs });
    oks.push(ok);
    return undefined;
  });
  return { rows, oks, totals };
}

const header = "seq,timestampNs,latencyNs,code,error\n";
const good = `0,${startNs},100,200,\n`;

test("times keep every nanosecond although they exceed safe integers", async () => {
  const sent = [
    { seq: 0, sentNs: 1, latencyNs: 5 },
    { seq: 1, sentNs: -999_999_999_999, latencyNs: 0 },
    { seq: 2, sentNs: 86_400_000_000_001, latencyNs: 999_999_999_999_999 },
  ];
  const { rows } = await read(renderRows(sent));
  assert.deepEqual(rows, sent);
});

test("rows come out as they went in, however they are cut into chunks", async () => {
  const row = fc.record({
    sentNs: fc.integer({ min: 0, max: 2 ** 40 }),
    latencyNs: fc.integer({ min: 0, max: 2 ** 40 }),
    code: fc.constantFrom(0, 200, 204, 401, 503),
    error: fc.constantFrom("", "", "dial tcp", 'a "quoted", one', "two\nlines", "\n", "é\r\n,"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 40 }), async (generated) => {
      const sent = generated.map((fields, seq) => ({ seq, ...fields }));
      const { rows, oks, totals } = await read(renderRows(sent));
      assert.deepEqual(
        rows,
        sent.map(({ seq, sentNs, latencyNs }) => ({ seq, sentNs, latencyNs })),
      );
      assert.deepEqual(
        oks,
        sent.map(({ code, error }) => code >= 200 && code < 300 && error === ""),
      );
      assert.equal(totals.failed, oks.filter((ok) => !ok).length);
    }),
    { numRuns: 50 },
  );
});

test("a file larger than a chunk is read whole", async () => {
  const sent = Array.from({ length: 30_000 }, (_, seq) => ({
    seq,
    sentNs: seq * 1000,
    latencyNs: seq,
    ...(seq % 7 === 0 && { code: 0, error: "broken, and\nlong ".repeat(9) }),
  }));
  const { rows, totals } = await read(renderRows(sent), 30_000);
  assert.equal(rows.length, 30_000);
  assert.deepEqual(rows[29_999], { seq: 29_999, sentNs: 29_999_000, latencyNs: 29_999 });
  assert.deepEqual(
    [...totals.codes],
    [
      [0, 4286],
      [200, 25_714],
    ],
  );
  assert.equal(totals.errors.size, 1);
});

test("kinds of errors are bounded", async () => {
  const sent = Array.from({ length: 300 }, (_, seq) => ({
    seq,
    sentNs: 0,
    latencyNs: 1,
    code: 0,
    error: `port ${seq}`,
  }));
  const { totals } = await read(renderRows(sent));
  assert.equal(totals.errors.size, 51);
  assert.equal(totals.errors.get("other"), 250);
});

const bad: readonly (readonly [string, string, RegExp])[] = [
  ["no header", good, /^requests\.csv\.gz:1: header: must be seq,timestampNs/],
  ["another header", `seq,ns\n${good}`, /:1: header: .*found "seq,ns"$/],
  ["nothing", "", /:1: header: .*found ""$/],
  ["a negative latency", `${header}0,${startNs},-5,200,\n`, /:2: latencyNs: .*found "-5,200,"$/],
  ["a fraction", `${header}0,${startNs},1.5,200,\n`, /:2: latencyNs: must be a whole number/],
  ["an exponent", `${header}0,${startNs},1e5,200,\n`, /:2: latencyNs: must be a whole number/],
  ["a latency beyond reason", `${header}0,${startNs},${"9".repeat(16)},200,\n`, /:2: latencyNs/],
  ["a short time", `${header}0,1790000000,5,200,\n`, /:2: timestampNs: .* of 19 digits/],
  ["a long time", `${header}0,${startNs}0,5,200,\n`, /:2: timestampNs: .* of 19 digits/],
  ["no sequence number", `${header}${good},${startNs},5,200,\n`, /:3: seq: must be a whole/],
  ["an unplanned one", `${header}1000,${startNs},5,200,\n`, /:2: seq: .*below the 1000 planned/],
  ["one twice", `${header}${good}${good}`, /:3: seq: must be each number once, found "0 again"$/],
  ["a missing field", `${header}0,${startNs},5,200\n`, /:2: code: must be/],
  ["a sixth field", `${header}0,${startNs},5,200,,\n`, /:2: error: must be a quoted field/],
  ["a stray quote", `${header}0,${startNs},5,0,a"b\n`, /:2: error: must be a quoted field/],
  ["text after a quote", `${header}0,${startNs},5,0,"a"b\n`, /:2: error: must be a line end/],
  ["an open quote", `${header}0,${startNs},5,0,"a\nb\n`, /:2: row: must be a line end/],
  ["no last line end", `${header}${good.trimEnd()}`, /:2: row: must be a line end/],
  ["an endless error", `${header}0,${startNs},5,0,"${"x".repeat(70_000)}"\n`, /:2: error: .*65536/],
];

for (const [what, text, message] of bad) {
  test(`${what} is refused with file and line`, async () => {
    await assert.rejects(read(gzipSync(text)), (error: unknown) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.code, "document");
      assert.match(error.message, message);
      return true;
    });
  });
}

test("lines are counted through quoted line ends", async () => {
  const text = `${header}0,${startNs},5,0,"a\nb\nc"\n1,${startNs},x,200,\n`;
  await assert.rejects(read(gzipSync(text)), /^Failure: requests\.csv\.gz:5: latencyNs/);
});

test("a cut-off gzip stream is refused", async () => {
  const whole = renderRows(
    Array.from({ length: 500 }, (_, seq) => ({ seq, sentNs: seq * 31, latencyNs: seq ** 2 })),
  );
  const cut = whole.subarray(0, whole.length - 40);
  await assert.rejects(read(cut), /^Failure: requests\.csv\.gz:\d+: cannot be decompressed/);
});

test("bytes that are no gzip are refused", async () => {
  await assert.rejects(read(Buffer.from("seq,")), /^Failure: requests\.csv\.gz:1: cannot be/);
});
