import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Analysis } from "../../../analysis/analysis.ts";
import { curveOf } from "../../../analysis/curve.ts";
import { LatencyHistogram } from "../../../analysis/histogram.ts";
import { describePath } from "../../../analysis/html/evidence.ts";
import { escapeHtml, fileLink, markup, table } from "../../../analysis/html/markup.ts";
import { stylesOf } from "../../../analysis/html/series.ts";
import { styleSheet } from "../../../analysis/html/style.ts";
import { headline } from "../../../analysis/html/verdict.ts";
import { wireTable } from "../../../analysis/html/wire.ts";
import { htmlFile, report } from "../../../analysis/report.ts";
import { makeBundle, removeBundle } from "../../support/bundle.ts";
import { hostileText, realisticCampaign } from "../../support/campaign.ts";

let directory: string;
let analysis: Analysis;
let page: string;

before(async () => {
  directory = await makeBundle(
    realisticCampaign({ blocks: 4, rateQps: 1000, durationSeconds: 10 }),
  );
  analysis = await report(directory);
  page = await readFile(path.join(directory, htmlFile), "utf8");
});
after(() => removeBundle(directory));

test("text put into markup is escaped, in elements and in attributes", () => {
  const hostile = `"><script>'&\u0007`;
  assert.equal(escapeHtml(hostile), "&quot;&gt;&lt;script&gt;&#39;&amp;\u{FFFD}");
  assert.equal(
    markup`<a title="${hostile}">${[hostile, undefined, 7]}</a>`.text,
    `<a title="${escapeHtml(hostile)}">${escapeHtml(hostile)}7</a>`,
  );
  assert.match(table(hostile, [{ title: hostile }], [[hostile]]).text, /^[^"]*"scroll"/);
  assert.doesNotMatch(table(hostile, [{ title: hostile }], [[hostile]]).text, /<script/);
});

test("a link to a file cannot leave its scheme or its attribute", () => {
  assert.equal(
    fileLink(`runs/a"b/javascript:x?.txt`, "x").text,
    `<a href="runs/a%22b/javascript%3Ax%3F.txt">x</a>`,
  );
});

test("hostile text of a record is shown as text", () => {
  assert.ok(page.includes(escapeHtml(hostileText)));
  assert.ok(!page.includes(hostileText));
  assert.deepEqual(page.match(/<(script|img|iframe|object|embed|link|base|form)\b/gi), null);
  assert.deepEqual(page.match(/<[^>]*\son[a-z]+\s*=/gi), null);
});

test("nothing on the page is fetched", () => {
  assert.match(
    page,
    /<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;/,
  );
  assert.deepEqual(page.match(/<[^>]*\ssrc=|@import|url\((?!#)/g), null);
  const targets = [...page.matchAll(/href="([^"]*)"/g)].map(([, target]) => target ?? "");
  assert.deepEqual(
    targets.filter((target) => /^[a-z]+:|^\//i.test(target)),
    [],
  );
});

test("every link leads to a file of the bundle or a place on the page", () => {
  const targets = [...page.matchAll(/href="([^"]*)"/g)].map(([, target]) => target ?? "");
  const broken = targets.filter((target) =>
    target.startsWith("#")
      ? !page.includes(`id="${target.slice(1)}"`)
      : !existsSync(path.join(directory, decodeURIComponent(target))),
  );
  assert.ok(targets.length > 100);
  assert.deepEqual(broken, []);
});

test("the page says in one sentence who is slower, who is equal and who has no result", () => {
  assert.match(
    headline(analysis),
    /^At 1000 requests\/s, p99 latency rises by \d+ to \d+ % with mtls-h1, by \d+ to \d+ % with mtls-h2 and by \d+ to \d+ % with gateway; .*has no result for hybrid \(no valid run\)\. Ranges are 95 % intervals\.$/,
  );
});

test("without any complete block the sentence gives no number", () => {
  const losses = analysis.comparison.losses.filter(({ label }) => label === "hybrid");
  const comparison = { ...analysis.comparison, losses };
  assert.equal(
    headline({ ...analysis, comparison }),
    "No verdict: not one treatment has a complete block of valid runs.",
  );
});

test("a bundle with only invalid runs makes a page without numbers, but with reasons", async () => {
  const campaign = realisticCampaign({ blocks: 2, rateQps: 500, durationSeconds: 2 });
  const broken = await makeBundle({
    ...campaign,
    content: (shape, plan) => ({
      ...campaign.content(shape, plan),
      edit: (record) => ({ ...record, failure: "load: driver died" }),
    }),
  });
  try {
    await report(broken);
    const text = await readFile(path.join(broken, htmlFile), "utf8");
    assert.match(text, /<h1>No verdict: not one treatment has a complete block/);
    assert.match(text, /No curve: no treatment has enough requests in valid runs/);
    assert.match(text, /completed: load: driver died, wanted to its end/);
    assert.doesNotMatch(text, /<svg/);
  } finally {
    await removeBundle(broken);
  }
});

test("one block has points, but no interval and no verdict", async () => {
  const single = await makeBundle(
    realisticCampaign({ blocks: 1, rateQps: 500, durationSeconds: 2 }),
  );
  try {
    const found = await report(single);
    assert.match(headline(found), /p50 latency has no verdict from a single block: /);
    const text = await readFile(path.join(single, htmlFile), "utf8");
    assert.match(text, /one block, no interval/);
  } finally {
    await removeBundle(single);
  }
});

test("every valid block is a point, and the estimate is their geometric mean", () => {
  const gateway = analysis.comparison.losses.find(({ label }) => label === "gateway");
  const points = gateway?.points.responseP50 ?? [];
  assert.deepEqual(
    points.map(({ block }) => block),
    [1, 2, 3, 4],
  );
  const logs = points.map(({ ratio }) => Math.log(ratio));
  const ratio = gateway?.ratios.responseP50;
  assert.ok(ratio?.kind === "estimate");
  const expected = Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length);
  assert.ok(Math.abs(ratio.ratio - expected) < 1e-9);
  const mesh = analysis.comparison.losses.find(({ label }) => label === "mtls-h2");
  assert.deepEqual(
    mesh?.points.responseP50.map(({ block }) => block),
    [1, 3, 4],
  );
});

test("curves add up the requests of valid runs only", () => {
  const of = (label: string) => analysis.curves.find((curve) => curve.label === label);
  assert.deepEqual(
    ["baseline", "jwt", "mtls-h2", "hybrid"].map((label) => of(label)?.planned),
    [80_000, 40_000, 30_000, 0],
  );
  assert.deepEqual(of("hybrid")?.response, []);
});

test("a curve ends before its tail has too few requests, and at failed ones", () => {
  const histogram = new LatencyHistogram();
  try {
    for (let ms = 1; ms <= 10_000; ms += 1) histogram.record(ms * 1000);
    const curve = curveOf(histogram, 10_000);
    assert.equal(curve[0]?.ns, 1000);
    assert.equal(curve.at(-1)?.percentile, 99);
    const median = curve.find(({ percentile }) => percentile > 50);
    assert.ok(median !== undefined);
    const expectedNs = median.percentile * 100 * 1000;
    assert.ok(Math.abs(median.ns / expectedNs - 1) < 0.002);
    const halfFailed = curveOf(histogram, 20_000);
    assert.ok((halfFailed.at(-1)?.percentile ?? 100) <= 50);
  } finally {
    histogram.destroy();
  }
});

test("a request path is told with its protocols and its TLS", () => {
  const deployment = analysis.runs.length > 0 ? page : "";
  assert.match(
    deployment,
    /load → sidecar-out → sidecar-in → service, HTTP\/1\.1, mutual TLS on 1/,
  );
  const leg = { from: "a", to: "b", http: "2", tls: "server", wire: {} } as const;
  const side = { ...leg, to: "c", tls: "none" } as const;
  assert.equal(
    describePath({ legs: [leg, side] } as never),
    "a → b, a → c, HTTP/2, TLS on 1 of 2 legs",
  );
});

test("treatments keep apart in colour and dash, the baseline is grey", () => {
  const labels = ["base", ...Array.from({ length: 14 }, (_, i) => `t${i}`)];
  const styles = stylesOf(labels, "base");
  assert.equal(styles[0]?.color, "var(--s0)");
  const looks = new Set(styles.map(({ color, dash }) => `${color} ${dash}`));
  assert.equal(looks.size, labels.length);
});

test("colours are readable on their ground, in light and in dark", () => {
  const themes = [...styleSheet.matchAll(/:root\{([^}]*)\}/g)].map(([, body = ""]) =>
    Object.fromEntries(
      [...body.matchAll(/--([\w-]+):(#[0-9a-f]{3,6})/g)].map(([, name = "", hex = ""]) => [
        name,
        luminance(hex),
      ]),
    ),
  );
  assert.equal(themes.length, 2);
  const text = ["ink", "muted", "link"].map((name) => [name, "surface", 4.5] as const);
  const badges = ["warn", "bad", "good", "even"].map((b) => [`${b}-ink`, b, 4.5] as const);
  const lines = Array.from({ length: 8 }, (_, i) => [`s${i}`, "surface", 3] as const);
  for (const theme of themes) {
    for (const [name, ground, least] of [...text, ...badges, ...lines]) {
      const [a, b] = [theme[name] ?? 0, theme[ground] ?? 0];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      assert.ok(contrast >= least, `${name} on ${ground}: ${contrast.toFixed(2)}`);
    }
  }
});

/** Relative luminance as the accessibility guidelines define it. */
function luminance(hex: string): number {
  const digits = hex.slice(1);
  const full = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const [r = 0, g = 0, b = 0] = [0, 2, 4].map((at) => {
    const share = Number.parseInt(full.slice(at, at + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test("a fact of a leg that is not as wanted, or not seen, is marked", () => {
  const leg = { from: "sidecar", to: "service", counts: { opened: 3 } };
  const expected = { http: "2", version: "TLSv1.3", group: "X25519" };
  const shown = wireTable([{ ...leg, expected, observed: { http: "1.1", version: "TLSv1.3" } }]);
  const text = markup`${shown}`.text;
  assert.match(text, /http<\/td>.*>2<\/td>.*>1\.1<\/td>.*invalid">no</);
  assert.match(text, /version<\/td>.*TLSv1\.3.*pass">yes</);
  assert.match(text, /group<\/td>.*X25519.*not seen.*invalid">no</);
  assert.match(text, /connections opened under load<\/td>.*>3</);
  assert.equal(markup`${wireTable([])}`.text, "");
});
