/** The report page in a real browser: what a reader sees on a screen and on paper. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as Plot from "@observablehq/plot";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { figure } from "../../analysis/html/plot.ts";
import { htmlFile, report } from "../../analysis/report.ts";
import { makeBundle, removeBundle } from "../support/bundle.ts";
import { hostileText, realisticCampaign } from "../support/campaign.ts";

/** The browser talks to nobody, not even to its maker. */
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const screen = { width: 1280, height: 800 };
/** A4 less the margins of the style sheet, at 96 dots an inch. */
const paperWidth = Math.floor(((210 - 2 * 12) / 25.4) * 96);

let directory: string;
let profile: string;
let browser: BrowserContext;
let page: Page;
let url: string;
const complaints: string[] = [];
const requests: string[] = [];

before(async () => {
  directory = await makeBundle(
    realisticCampaign({ blocks: 6, rateQps: 1000, durationSeconds: 10 }),
  );
  await report(directory);
  url = pathToFileURL(path.join(directory, htmlFile)).href;
  profile = await mkdtemp(path.join(tmpdir(), "ztbench-browser-"));
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    args: flags,
    viewport: screen,
  });
  page = browser.pages()[0] ?? (await browser.newPage());
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(dialog.message());
    void dialog.dismiss();
  });
  page.on("request", (request) => requests.push(request.url()));
});
after(async () => {
  await browser.close();
  await rm(profile, { recursive: true, force: true });
  await removeBundle(directory);
});
beforeEach(async () => {
  await page.setViewportSize(screen);
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  await page.goto(url);
});

/** Elements that reach beyond the right edge of the page, outside of what scrolls by itself. */
function tooWide(within: string): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll(${JSON.stringify(within)})]
    .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((e) => e.tagName + " " + e.textContent.slice(0, 40))`);
}

test("the page renders without a complaint and asks for nothing but itself", async () => {
  requests.length = 0;
  await page.reload({ waitUntil: "networkidle" });
  assert.deepEqual(requests, [url]);
  assert.deepEqual(complaints, []);
  assert.equal(await page.locator("figure svg").count(), 6);
});

test("the first screen holds the answer, its table and its stamp", async () => {
  for (const selector of ["h1", ".notices", "table.cost", ".stamp"]) {
    const box = await page.locator(selector).boundingBox();
    assert.ok(box !== null && box.height > 0, `${selector} is not shown`);
    assert.ok(box.y + box.height <= screen.height, `${selector} ends at ${box.y + box.height}`);
  }
  assert.match(await page.locator("h1").innerText(), /^At 1000 requests\/s, p99 latency rises by/);
  assert.match(await page.locator(".notices").innerText(), /not comparable to bare metal/);
});

test("the table tells its rows and columns to those who cannot see it", async () => {
  const cost = page.getByRole("table").first();
  assert.equal(await cost.getByRole("columnheader").count(), 5);
  const row = cost.getByRole("row", { name: /^gateway/ });
  assert.equal(await row.getByRole("rowheader").count(), 1);
  assert.match(await row.innerText(), /loss[\s\S]*\[\+\d+, \+\d+\] %[\s\S]*µs/);
});

test("hostile text becomes no element", async () => {
  assert.equal(await page.locator("script, img").count(), 0);
  const text = await page.locator("#runs ~ .long").innerText();
  assert.ok(text.includes(hostileText));
});

test("hostile text in a plot becomes no element, wherever the plot shows it", async () => {
  const hostile = `">${hostileText}<a href='`;
  const data = [{ x: 1, y: hostile }];
  const marks = [Plot.text(data, { x: "x", y: "y", text: "y", title: "y", ariaLabel: "y" })];
  await page.setContent(figure(hostile, hostile, { marks }).text);
  assert.equal(await page.locator("svg").count(), 1);
  assert.equal(await page.locator("script, img, a, [onerror]").count(), 0);
  assert.equal(await page.locator("svg").getAttribute("aria-description"), hostile);
  assert.deepEqual(complaints, []);
});

test("a link to a run opens its closed section", async () => {
  const section = page.locator("details", { has: page.locator("#run-6") });
  assert.equal(await section.getAttribute("open"), null);
  await page.locator('a[href="#run-6"]').click();
  assert.notEqual(await section.getAttribute("open"), null);
  assert.ok(await section.getByRole("table").first().isVisible());
  assert.match(await section.innerText(), /Gates: what was measured and what was wanted/);
});

test("nothing sticks out on a wide and on a narrow screen", async () => {
  for (const width of [1280, 800, 400]) {
    await page.setViewportSize({ width, height: 800 });
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
    assert.deepEqual(await tooWide("section, aside, h1, .cost td, figure"), []);
  }
});

test("dark colours follow the reader's setting and never reach paper", async () => {
  const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const ink = () => page.evaluate("getComputedStyle(document.body).color");
  const [light, lightInk] = [await ground(), await ink()];
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await ground(), light);
  assert.notEqual(await ink(), lightInk);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await ink(), lightInk);
});

test("it prints to pages, with nothing cut off", async () => {
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width: paperWidth, height: 1000 });
  assert.deepEqual(await tooWide("main *"), []);
  const file = await page.pdf({ preferCSSPageSize: true, printBackground: true });
  assert.equal(file.subarray(0, 5).toString(), "%PDF-");
  const pages = file.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? [];
  assert.ok(pages.length >= 3 && pages.length <= 12, `${pages.length} pages`);
});
