/** Reads the capacity searches of a bundle and decides every probe again from its raw files. */
import { join } from "node:path";
import { type CapacitySearch, capacitySearchSchema } from "../contracts/capacity-search.ts";
import type { CapacitySettings } from "../contracts/capacity.ts";
import { documentBytesMax, parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { readBoundedText } from "./bounded-text.ts";
import type { Bundle } from "./bundle.ts";
import type { JudgedSearch, TriedRate } from "./capacity.ts";
import { measureProbe } from "./capacity-probe.ts";

const place = "capacity";

/**
 * All searches that a bundle lists.
 *
 * @throws Failure `document` if a search is bad, or if a probe was decided otherwise than its
 *   requests say
 */
export async function judgeSearches(
  bundle: Bundle,
  settings: CapacitySettings,
): Promise<JudgedSearch[]> {
  const names = [...bundle.sums.keys()].flatMap((file) => {
    const name = /^capacity\/([^/]+)\/search\.json$/.exec(file)?.[1];
    return name === undefined ? [] : [name];
  });
  const found: JudgedSearch[] = [];
  for (const name of names.sort()) found.push(await judgeSearch(bundle, settings, name));
  return found;
}

async function judgeSearch(
  bundle: Bundle,
  settings: CapacitySettings,
  name: string,
): Promise<JudgedSearch> {
  const file = `${place}/${name}/search.json`;
  const text = await readBoundedText(join(bundle.directory, file), file, documentBytesMax);
  const search = parseDocument(capacitySearchSchema, text, file);
  const expected = `b${search.block}-${search.label}`;
  if (name !== expected) {
    throw new Failure("document", `${file}: belongs to ${expected}, found in ${name}`);
  }
  const tried: TriedRate[] = [];
  for (const probe of search.probes) {
    tried.push(await judgeAgain(bundle, settings, `${place}/${name}`, probe));
  }
  const { block, position, label, ended, treatment } = search;
  return { block, position, label, ended, topology: treatment.topology, tried };
}

async function judgeAgain(
  bundle: Bundle,
  settings: CapacitySettings,
  within: string,
  probe: CapacitySearch["probes"][number],
): Promise<TriedRate> {
  const { purpose, rateQps, passed, reasons, measured } = probe;
  const told = { purpose, rateQps, passed, reasons };
  // What broke off after its load was done did not pass, whatever its requests say.
  const isBroken = reasons.some((reason) => reason.startsWith("broke off"));
  if (measured === undefined || isBroken) return told;
  const name = `${within}/${probe.directory}`;
  const result = await measureProbe(join(bundle.directory, name), name, { measured }, settings);
  if (result.passed !== passed) {
    const found = result.passed ? "it holds" : `it does not hold, ${result.reasons.join("; ")}`;
    const at = `${within}/search.json: ${probe.directory}`;
    throw new Failure("document", `${at}: passed is ${passed}, its requests say that ${found}`);
  }
  return { ...told, result };
}
