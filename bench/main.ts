/** `npm run bench [NAME...]`: runs benchmarks one after another, each in a process of its own. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";

const own = path.basename(import.meta.filename);
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".ts") && file !== own)
  .map((file) => path.basename(file, ".ts"))
  .sort();

const usageStatus = 2;

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`bench: unknown, ${unknown.join(", ")}, one of ${names.join(", ")}`);
  process.exitCode = 2;
} else {
  for (const name of asked.length > 0 ? asked : names) {
    console.log(`\n== ${name}`);
    const file = path.join(import.meta.dirname, `${name}.ts`);
    const done = spawnSync(process.execPath, ["--import", "tsx", file], { stdio: "inherit" });
    // Some measure a bundle of the user's: without one they say how they are called.
    const wantsMore = done.status === usageStatus && asked.length === 0;
    if (done.status !== 0 && !wantsMore) process.exitCode = 1;
  }
}
