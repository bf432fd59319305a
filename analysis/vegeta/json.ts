/** Reads the JSON of `vegeta encode`: one object a line. */
import { Failure } from "../../contracts/failure.ts";
import { newline } from "../byte-rows.ts";
import { AttackTally, type FileTotals, type Instant, type ResultSink } from "./rows.ts";

const lineBytesMax = 24 * 1024 * 1024;
const latencyMaxNs = 1e15;
const instant =
  /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

type Fields = Readonly<Record<string, unknown>>;

export class JsonResults {
  readonly #name: string;
  readonly #sink: ResultSink;
  readonly #tally: AttackTally;
  #rest: Buffer = Buffer.alloc(0);
  #line = 1;
  #stopped = false;
  /** The second seen last and its value, since most rows share it with their neighbours. */
  #moment = "";
  #seconds = 0;

  /** @param origin undefined takes the first row's second */
  constructor(name: string, sink: ResultSink, origin?: Instant) {
    this.#name = name;
    this.#sink = sink;
    this.#tally = new AttackTally(origin);
  }

  position(): string {
    return `${this.#name}:${this.#line}`;
  }

  totals(): FileTotals {
    return this.#tally.totals();
  }

  push(chunk: Buffer): boolean {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (!this.#stopped) {
      const end = bytes.indexOf(newline, at);
      if (end === -1) break;
      this.#take(bytes.toString("utf8", at, end));
      at = end + 1;
      this.#line += 1;
    }
    this.#rest = bytes.subarray(at);
    if (this.#rest.length > lineBytesMax) {
      this.#fail("line", `at most ${lineBytesMax} bytes`, this.#rest.toString("latin1", 0, 60));
    }
    return this.#stopped;
  }

  end(): void {
    if (this.#rest.length === 0) return;
    const found = this.#rest.toString("latin1", 0, 60);
    this.#fail("line", "a whole result with a line end", found);
  }

  #take(text: string): void {
    const fields = this.#parse(text);
    const seq = this.#whole(fields, "seq", Number.MAX_SAFE_INTEGER);
    const code = this.#whole(fields, "code", 999);
    const latencyNs = this.#whole(fields, "latency", latencyMaxNs);
    const { seconds, ns } = this.#instant(fields);
    const error = this.#string(fields, "error");
    const attack = this.#string(fields, "attack");
    const outcome = this.#tally.take(() => this.position(), seq, code, error, attack);
    this.#stopped = this.#sink(seq, this.#tally.since(seconds, ns), latencyNs, outcome) === true;
  }

  #parse(text: string): Fields {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      this.#fail("line", "a JSON object", text);
    }
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
      this.#fail("line", "a JSON object", text);
    }
    return parsed as Fields;
  }

  #whole(fields: Fields, key: string, most: number): number {
    const value = fields[key];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= most) {
      return value;
    }
    this.#fail(key, `a whole number of 0 to ${most}`, value);
  }

  #string(fields: Fields, key: string): string {
    const value = fields[key];
    if (typeof value !== "string") this.#fail(key, "text", value);
    return value;
  }

  #instant(fields: Fields): { readonly seconds: number; readonly ns: number } {
    const text = this.#string(fields, "timestamp");
    const [, moment = "", fraction = "", zone = ""] = instant.exec(text) ?? [];
    const whole = moment + zone;
    if (whole !== this.#moment || whole === "") {
      this.#seconds = Date.parse(whole) / 1000;
      if (!Number.isFinite(this.#seconds)) this.#fail("timestamp", "an instant of RFC 3339", text);
      this.#moment = whole;
    }
    return { seconds: this.#seconds, ns: Number(fraction.padEnd(9, "0")) };
  }

  #fail(key: string, wanted: string, found: unknown): never {
    const shown = found === undefined ? "nothing" : JSON.stringify(found);
    const short = shown.length > 60 ? `${shown.slice(0, 57)}...` : shown;
    throw new Failure("document", `${this.position()}: ${key}: must be ${wanted}, found ${short}`);
  }
}
