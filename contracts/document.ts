/** Reads YAML or JSON documents against a schema; every complaint carries file:line:column. */
import {
  type Document,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  parseDocument as parseYaml,
  visit,
  type YAMLError,
} from "yaml";
import type { z } from "zod";
import { Failure } from "./failure.ts";

type Issue = z.core.$ZodIssue;

/** More than any document of ours needs; bounds the time and memory that reading one takes. */
export const documentBytesMax = 4 * 1024 * 1024;

/** So many are worth reading at once; the rest is counted. */
const problemsMax = 20;

/** Repetitions by alias, so that a few lines cannot stand for billions. */
const aliasesMax = 100;

type Problem = { readonly offset: number; readonly text: string };

/**
 * Parses and validates one document. All problems are gathered and thrown once, the first
 * `problemsMax` of them in full.
 *
 * @param schema what the document must be
 * @param text the document, YAML 1.2 (of which JSON is a part)
 * @param file its name, for messages only
 * @throws Failure `document`, each problem on a line of its own: `file:line:column: path: problem`
 */
export function parseDocument<S extends z.ZodType>(
  schema: S,
  text: string,
  file: string,
): z.output<S> {
  if (text.length > documentBytesMax) {
    throw new Failure(
      "document",
      `${file}: too long, ${text.length} characters, at most ${documentBytesMax} allowed`,
      { hint: "name the document that was meant" },
    );
  }
  const written = asWritten(text);
  if (written !== undefined) {
    const quick = schema.safeParse(written);
    if (quick.success) return quick.data;
  }
  const lines = new LineCounter();
  const fail = (
    problems: readonly Problem[],
    hint = `correct ${file} at the position given`,
  ): never => {
    const shown = problems.slice(0, problemsMax).map((problem) => {
      const { line, col } = lines.linePos(problem.offset);
      return `${file}:${line}:${col}: ${problem.text}`;
    });
    const more = problems.length - shown.length;
    const rest = more > 0 ? [`${file}: and ${more} problems more`] : [];
    throw new Failure("document", [...shown, ...rest].join("\n"), { hint });
  };
  // The parser compares every key of a map with every other one: we look for repeated keys instead.
  const document = parseYaml(text, {
    lineCounter: lines,
    logLevel: "error",
    prettyErrors: false,
    uniqueKeys: false,
  });
  // What the parser only warns of, e.g. a tag that it does not know, it leaves out.
  const complaints = [...document.errors, ...document.warnings].map(describeSyntax);
  if (complaints.length > 0) fail(complaints);
  const faults = faultsOf(document);
  if (faults.length > 0) fail(faults);
  const value = toValue(document, fail);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = flatten(parsed.error.issues);
  for (const issue of issues) {
    const text = describeNewer(issue, value);
    // Whatever else does not fit is what the newer version brought.
    if (text === undefined) continue;
    const problem = { offset: offsetOf(document.contents, issue), text };
    return fail([problem], "read it with the ztbench that made it, or a later one");
  }
  return fail(
    issues.map((issue, index) =>
      index < problemsMax
        ? { offset: offsetOf(document.contents, issue), text: describeIssue(issue, value) }
        : { offset: 0, text: "" },
    ),
  );
}

/**
 * The value of JSON as ztbench writes it, undefined for any other text: the parser that knows
 * positions takes many times as long. Only what would be written back as the same text is taken,
 * since `JSON.parse` says nothing of keys that come twice and of numbers that it rounds.
 */
function asWritten(text: string): unknown {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return text.trimEnd() === JSON.stringify(value, null, 2) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The parser's own words, but for those that speak of its insides. */
function describeSyntax({ code, message, pos }: YAMLError): Problem {
  const offset = pos[0];
  if (message.includes("call stack")) return { offset, text: "document: is nested too deep" };
  if (code === "MULTIPLE_DOCS")
    return { offset, text: "document: must be the only one in the file" };
  return { offset, text: `not YAML: ${message.charAt(0).toLowerCase()}${message.slice(1)}` };
}

/** Keys that come twice or are no plain text, and aliases of nothing or of what holds them. */
function faultsOf(document: Document.Parsed): Problem[] {
  const faults: Problem[] = [];
  const anchors = new Set<string>();
  visit(document, {
    Node(_, node) {
      const { anchor } = node as { anchor?: string };
      if (anchor !== undefined) anchors.add(anchor);
      if (isMap(node)) faults.push(...faultyKeys(node.items.map(({ key }) => key)));
    },
    Alias(_, { source, range }, above) {
      const offset = range?.[0] ?? 0;
      if (above.some((node) => (node as { anchor?: string }).anchor === source)) {
        faults.push({ offset, text: `alias *${source}: repeats what it is a part of` });
      } else if (!anchors.has(source)) {
        faults.push({ offset, text: `alias *${source}: has no anchor before it` });
      }
    },
  });
  return faults;
}

function faultyKeys(keys: readonly unknown[]): Problem[] {
  const seen = new Set<string>();
  return keys.flatMap((key): Problem[] => {
    const offset = rangeStart(key) ?? 0;
    if (!isScalar(key)) return [{ offset, text: "key: must be plain text" }];
    const name = String(key.value);
    if (seen.has(name)) return [{ offset, text: `${shorten(name)}: key is already used above` }];
    seen.add(name);
    return [];
  });
}

/** The document as plain values; only aliases can still stand in the way. */
function toValue(
  document: Document.Parsed,
  fail: (problems: readonly Problem[]) => never,
): unknown {
  try {
    return document.toJS({ maxAliasCount: aliasesMax });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    const text = `aliases: repeat too much, at most ${aliasesMax} repetitions allowed`;
    let offset = 0;
    visit(document, {
      Alias(_, { range }) {
        offset = range?.[0] ?? 0;
        return visit.BREAK;
      },
    });
    return fail([{ offset, text }]);
  }
}

/** One complaint per misspelt key, so that each gets its own position. */
function flatten(issues: readonly Issue[]): Issue[] {
  return issues.flatMap((issue): Issue[] =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => ({ ...issue, keys: [key], path: [...issue.path, key] }))
      : [issue],
  );
}

function describeIssue(issue: Issue, root: unknown): string {
  const path = issue.path.map(String).join(".") || "document";
  if (issue.code === "unrecognized_keys") return `${shorten(path)}: unknown key`;
  const seen = valueAt(root, issue.path);
  const shown = seen === undefined ? "nothing" : JSON.stringify(seen);
  const problem = issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  return `${path}: ${problem}, found ${shorten(shown)}`;
}

const schemaVersion = /^(ztbench\/[a-z-]+)\/(\d{1,6})$/;

/** What to say of a document whose schema is of a later version; undefined if it is not. */
function describeNewer(issue: Issue, root: unknown): string | undefined {
  if (issue.path.at(-1) !== "schema") return undefined;
  const [, name, version] = schemaVersion.exec(String(valueAt(root, issue.path))) ?? [];
  const { values = [], options = [] } = issue as { values?: unknown[]; options?: unknown[] };
  const known = [...values, ...options].map(String);
  const isNewer = known.some((one) => {
    const [, knownName, knownVersion] = schemaVersion.exec(one) ?? [];
    return knownName !== undefined && knownName === name && Number(knownVersion) < Number(version);
  });
  if (!isNewer) return undefined;
  const path = issue.path.map(String).join(".");
  const found = `${name ?? ""}/${version ?? ""}`;
  return `${path}: made by a newer ztbench, ${found}, this one reads ${known.join(" or ")}`;
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** The place of the offending key or value, or of its nearest parent that is there. */
function offsetOf(contents: Node | null, issue: Issue): number {
  let node: unknown = contents;
  let offset = rangeStart(contents) ?? 0;
  for (const key of issue.path) {
    const items = (node as { items?: unknown[] } | null)?.items;
    if (!Array.isArray(items)) break;
    if (typeof key === "number") {
      node = items[key];
      offset = rangeStart(node) ?? offset;
      continue;
    }
    const pair = items.find(
      (item) => (item as { key?: { value?: unknown } }).key?.value === key,
    ) as { key: unknown; value: unknown } | undefined;
    if (pair === undefined) break;
    const isKeyItself = issue.code === "unrecognized_keys" && key === issue.path.at(-1);
    offset = rangeStart(isKeyItself ? pair.key : (pair.value ?? pair.key)) ?? offset;
    node = pair.value;
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | null | undefined)?.range?.[0];
}
