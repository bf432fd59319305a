/** A strict reader of OpenMetrics 1.0 text, for the metric types that ztbench writes. */

export type Metric = {
  readonly family: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

type Family = { readonly name: string; type?: string; unit?: string; help?: string };

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/**
 * Reads a whole exposition.
 *
 * @throws Error with the line that breaks the format
 */
export function parseOpenMetrics(text: string): readonly Metric[] {
  if (!text.endsWith("\n# EOF\n")) throw new Error("must end with # EOF and a line feed");
  const metrics: Metric[] = [];
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let family: Family | undefined;
  for (const line of text.slice(0, -"# EOF\n".length).split("\n").slice(0, -1)) {
    const [, keyword, name = "", rest = ""] = /^# (TYPE|UNIT|HELP) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === undefined) {
      const metric = parseSample(line, family);
      const key = JSON.stringify([metric.family, metric.labels]);
      if (seen.has(key)) throw new Error(`sample given twice: ${line}`);
      seen.add(key);
      metrics.push(metric);
      continue;
    }
    if (family?.name !== name) {
      if (families.has(name) || !metricName.test(name)) throw new Error(`family: ${line}`);
      family = { name };
      families.set(name, family);
    }
    describe(family, keyword, rest, line);
  }
  return metrics;
}

function describe(family: Family, keyword: string, rest: string, line: string): void {
  const key = keyword.toLowerCase() as "type" | "unit" | "help";
  if (family[key] !== undefined) throw new Error(`given twice: ${line}`);
  family[key] = rest;
  if (key === "type" && !["gauge", "info"].includes(rest)) throw new Error(`type: ${line}`);
  if (key === "unit" && !family.name.endsWith(`_${rest}`)) throw new Error(`unit: ${line}`);
  if (key === "help" && /\\(?![\\n"])/.test(rest)) throw new Error(`escape: ${line}`);
}

function parseSample(line: string, family: Family | undefined): Metric {
  const [, name = "", pairs = "", number = ""] = /^([^{ ]+)\{(.*)\} (\S+)$/.exec(line) ?? [];
  const expected = family?.type === "info" ? `${family.name}_info` : family?.name;
  if (family?.type === undefined || name !== expected) throw new Error(`family: ${line}`);
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(number)) throw new Error(`number: ${line}`);
  if (family.type === "info" && number !== "1") throw new Error(`info must be 1: ${line}`);
  return { family: family.name, labels: labelsOf(pairs, line), value: Number(number) };
}

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  labelPair.lastIndex = 0;
  while (labelPair.lastIndex < text.length) {
    const match = labelPair.exec(text);
    const [, key = "", value = ""] = match ?? [];
    if (match === null || Object.hasOwn(labels, key)) throw new Error(`labels: ${line}`);
    labels[key] = value.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
  }
  return labels;
}
