/** Makes results as vegeta writes them, with known times. */

export type Result = {
  readonly seq: number;
  /** Nanoseconds after `beganNs`. */
  readonly sentNs: number;
  readonly latencyNs: number;
  readonly code?: number;
  readonly error?: string;
  readonly attack?: string;
};

/** Not a whole second, as in life. */
export const beganNs = 1_790_000_000_123_456_789n;

const url = "http://198.18.0.12:8080/api/echo";

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** `vegeta encode -to csv`. */
export function csvOf(results: readonly Result[]): string {
  return results
    .map(({ seq, sentNs, latencyNs, code = 200, error = "", attack = "" }) => {
      const times = `${beganNs + BigInt(sentNs)},${code},${latencyNs},0,256`;
      return `${times},${quoted(error)},,${quoted(attack)},${seq},GET,${url},\n`;
    })
    .join("");
}

/** `vegeta encode -to json`; the zone of the timestamps is two hours east, as Go writes it. */
export function jsonOf(results: readonly Result[]): string {
  return results
    .map(({ seq, sentNs, latencyNs, code = 200, error = "", attack = "" }) => {
      const at = beganNs + BigInt(sentNs);
      const moment = new Date(Number(at / 1_000_000_000n) * 1000 + 7_200_000).toISOString();
      const fraction = String(at % 1_000_000_000n)
        .padStart(9, "0")
        .replace(/0+$/, "");
      const timestamp = `${moment.slice(0, 19)}${fraction === "" ? "" : `.${fraction}`}+02:00`;
      const fields = { attack, seq, code, timestamp, latency: latencyNs };
      const rest = { bytes_out: 0, bytes_in: 256, error, body: null, method: "GET", url };
      return `${JSON.stringify({ ...fields, ...rest, headers: null })}\n`;
    })
    .join("");
}

/** An attack on time: each request leaves when it is due, but for what `change` says. */
export function attack(
  count: number,
  intervalNs: number,
  change: (seq: number) => Partial<Result> = () => ({}),
): Result[] {
  return Array.from({ length: count }, (_, seq) => ({
    seq,
    sentNs: (seq + 1) * intervalNs,
    latencyNs: 200_000,
    ...change(seq),
  }));
}

/**
 * The same by a driver of few workers: a request that is due waits until one is free. The server
 * answers at once, but for the first second of each ten, in which it stands still.
 */
export function cappedAttack(count: number, intervalNs: number, workers: number): Result[] {
  const servedNs = 100_000;
  const free = new Float64Array(workers);
  return Array.from({ length: count }, (_, seq) => {
    const dueNs = (seq + 1) * intervalNs;
    const worker = free.indexOf(Math.min(...free));
    const sentNs = Math.max(dueNs, free[worker] ?? 0);
    const intoNs = sentNs % 10e9;
    const latencyNs = intoNs < 1e9 ? 1e9 - intoNs + servedNs : servedNs;
    free[worker] = sentNs + latencyNs;
    return { seq, sentNs, latencyNs };
  });
}
