/** The verb `read`: analyses results of vegeta outside of any campaign. */
import path from "node:path";
import { type Reading, readFiles } from "../analysis/vegeta/reading.ts";
import { openResults, type ResultFile } from "../analysis/vegeta/source.ts";
import { renderReading } from "../analysis/vegeta/text.ts";
import { Failure } from "../contracts/failure.ts";
import { toolPaths } from "../tools/paths.ts";
import { gobDecoder } from "./gob.ts";
import { readArguments, type Verb } from "./verb.ts";
import { root } from "./workspace.ts";

const usage = `./ztbench read FILE... --rate R [--duration D] [--json]

Prints response, service and lag of vegeta's results, gob, CSV or JSON. Several files are the
results of processes that ran at the same time, each at rate R: they are merged over the time in
which all of them ran. R is requests per second of each process and D its length, e.g. 30s, both
as vegeta was told. Without D the highest sequence number counts as the last planned request.`;

const filesMax = 256;
const rateMax = 1_000_000;
const secondsMax = 86_400;

export const read: Verb = {
  summary: "print response, service and lag of vegeta's results, outside of any campaign",
  usage,
  async run(argv, io) {
    const options = {
      rate: { type: "string" },
      duration: { type: "string" },
      json: { type: "boolean" },
    } as const;
    const { values, positionals } = readArguments(
      argv,
      options,
      { least: 1, most: filesMax },
      usage,
    );
    const rateQps = readRate(values.rate);
    const durationSeconds =
      values.duration === undefined ? undefined : readSeconds(values.duration);
    const files: ResultFile[] = [];
    for (const name of positionals) files.push(await openResults(path.resolve(name), name));
    refuseTwice(files);
    const decodeGob = gobDecoder(path.join(toolPaths(root).hostBin, "ztload"));
    const reading = await readFiles(files, { rateQps, durationSeconds, decodeGob });
    io.print(values.json === true ? JSON.stringify(reading, null, 2) : renderReading(reading));
    refuseInvalid(reading);
    return 0;
  },
};

function readRate(text: string | undefined): number {
  const wanted = `a whole number of requests per second, 1 to ${rateMax}`;
  const hint = "give the rate of one process, as vegeta was told";
  if (text === undefined) throw new Failure("usage", `--rate: missing, ${wanted}`, { hint });
  const [, digits] = /^(\d{1,7})(?:\/1?s)?$/.exec(text) ?? [];
  const rate = Number(digits);
  if (rate >= 1 && rate <= rateMax) return rate;
  throw new Failure("usage", `--rate: "${text}", wanted ${wanted}`, { hint });
}

const unitSeconds: Readonly<Record<string, number>> = { ms: 1e-3, s: 1, m: 60, h: 3600 };

/** A duration as Go writes it, or plain seconds. */
function readSeconds(text: string): number {
  const isWhole = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$|^\d+(?:\.\d+)?$/.test(text);
  let seconds = 0;
  for (const [, amount, unit = "s"] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)?/g)) {
    seconds += Number(amount) * (unitSeconds[unit] ?? Number.NaN);
  }
  if (isWhole && seconds > 0 && seconds <= secondsMax) return seconds;
  throw new Failure("usage", `--duration: "${text}", wanted more than 0 and at most 24h`, {
    hint: "write it as vegeta was told, e.g. 30s or 1m30s",
  });
}

/** A file that is given twice would count twice. */
function refuseTwice(files: readonly ResultFile[]): void {
  const seen = new Set<string>();
  for (const { path: file, name } of files) {
    if (seen.has(file))
      throw new Failure("usage", `arguments: ${name} is given twice, once wanted`);
    seen.add(file);
  }
}

/** The figures are shown, but they must not pass for a measurement in a script either. */
function refuseInvalid({ problems }: Reading): void {
  if (problems.length === 0) return;
  throw new Failure("document", problems.join("\n"), {
    hint: "the figures above are no measurement; measure again",
  });
}
