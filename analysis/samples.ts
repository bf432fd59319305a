/**
 * Reads the raw text that the resident sampler of a host wrote: blocks of what the kernel said at
 * a moment. Turns counters into growth; decides nothing.
 */
import { Failure } from "../contracts/failure.ts";

export type Sample = {
  /** Nanoseconds after the origin given to the parser. */
  readonly atNs: number;
  /** What was read, as the sampler names it. */
  readonly source: string;
  readonly content: string;
  /** Line of its head in the file. */
  readonly line: number;
};

/** A sampler writes some hundred blocks a second, over an hour at most. */
const samplesMax = 1_000_000;

export type Point = { readonly atNs: number; readonly value: number };

/**
 * Cuts a sample file into its blocks: `### <nanoseconds since 1970> <source>`, then the content.
 *
 * @param originNs nanoseconds since 1970 that times count from
 * @throws Failure `document` with `file:line:` if the file begins otherwise or a head is no head,
 *   or if there are more blocks than a run can have
 */
export function parseSamples(text: string, file: string, originNs: string): readonly Sample[] {
  const origin = BigInt(originNs);
  const samples: Sample[] = [];
  // Block by block: a string for each line would take many times the memory of the text.
  let at = /[^\n]/.exec(text)?.index ?? text.length;
  let line = at + 1;
  while (at < text.length) {
    const headEnd = endOf(text, text.indexOf("\n", at));
    const head = text.slice(at, headEnd);
    const [, ns, source] = /^### (\d{19}) (\S.*)$/.exec(head) ?? [];
    if (ns === undefined || source === undefined) failHead(file, line, head);
    if (samples.length >= samplesMax) {
      throw new Failure("document", `${file}:${line}: too many blocks, allowed ${samplesMax}`);
    }
    const contentEnd = endOf(text, text.indexOf("\n### ", headEnd));
    const content = text.slice(headEnd + 1, contentEnd).trim();
    samples.push({ atNs: Number(BigInt(ns) - origin), source, line, content });
    line += linesIn(text, at, contentEnd) + 1;
    at = contentEnd + 1;
  }
  return samples;
}

function endOf(text: string, found: number): number {
  return found === -1 ? text.length : found;
}

/** Line ends from one index up to another. */
function linesIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let i = text.indexOf("\n", from); i !== -1 && i < to; i = text.indexOf("\n", i + 1)) {
    count += 1;
  }
  return count;
}

function failHead(file: string, line: number, found: string): never {
  const shown = JSON.stringify(found.slice(0, 60));
  throw new Failure(
    "document",
    `${file}:${line}: must be "### <nanoseconds since 1970> <source>", found ${shown}`,
  );
}

/** The value of `key` in text of lines `key value`, undefined if it is not there. */
export function fieldOf(content: string, key: string): number | undefined {
  for (const line of content.split("\n")) {
    const [name, text] = line.split(/:?\s+/);
    if (name === key && text !== undefined && /^\d+$/.test(text)) return Number(text);
  }
  return undefined;
}

/** Readings of one number over time, in order; blocks that do not hold it are left out. */
export function pointsOf(
  samples: readonly Sample[],
  file: string,
  read: (content: string) => number | undefined,
): readonly Point[] {
  return samples
    .filter(({ source }) => source.endsWith(` ${file}`))
    .flatMap(({ atNs, content }) => {
      const value = read(content);
      return value === undefined ? [] : [{ atNs, value }];
    })
    .sort((a, b) => a.atNs - b.atNs);
}

/**
 * Blocks of one unit. The sampler names them `unit NAME FILE` for the control group,
 * `unit NAME pid PID FILE` for each process, `unit NAME absent` where there is no such group.
 */
export function samplesOfUnit(samples: readonly Sample[], unit: string): readonly Sample[] {
  return samples.filter(({ source }) => source.startsWith(`unit ${unit} `));
}

export type Growth = { readonly fromNs: number; readonly toNs: number; readonly delta: number };

/**
 * How much a counter grew between its first and last reading within a window.
 *
 * Note: readings at the window's edges are not interpolated. Load starts and ends at the edges, so
 * a straight line through a reading outside of the window mixes idle time into it, by up to a
 * quarter of a sampling period at each edge. Within the window the load is steady, hence growth
 * over time passed has no such bias.
 *
 * @returns the growth, or the reason why there is none
 */
export function growthWithin(
  points: readonly Point[],
  fromNs: number,
  toNs: number,
  coverageMin: number,
): Growth | string {
  const inside = points.filter(({ atNs }) => atNs >= fromNs && atNs <= toNs);
  const [first, last] = [inside[0], inside.at(-1)];
  if (first === undefined || last === undefined) return "not sampled";
  if (last.atNs - first.atNs < coverageMin * (toNs - fromNs)) {
    return "samples cover too little of the run";
  }
  const fell = inside.some((point, index) => point.value < (inside[index - 1]?.value ?? 0));
  if (fell) return "counter started anew";
  return { fromNs: first.atNs, toNs: last.atNs, delta: last.value - first.value };
}
