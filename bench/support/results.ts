/** Makes results as vegeta writes them, from a seed: the same file for the same number of rows. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";

export const rateQps = 10_000;
export const intervalNs = 1e9 / rateQps;
export const startNs = 1_790_000_000_000_000_000n;
const url = "http://198.18.0.12:8080/api/echo";
const bufferChars = 1 << 18;

export type Encoding = "csv" | "json";

export type MadeRequest = {
  readonly seq: number;
  readonly sentNs: bigint;
  readonly latencyNs: number;
};

/** Latencies are exponential above 150 us, so that they have a long tail. */
export function* requestsOf(rows: number): Generator<MadeRequest, void> {
  let state = 1;
  // Lehmer's generator with the modulus 2^31 - 1 (Park and Miller, CACM 1988).
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let seq = 0; seq < rows; seq += 1) {
    const sentNs = startNs + BigInt(seq * intervalNs + Math.floor(random() * 50_000));
    yield { seq, sentNs, latencyNs: Math.floor(150_000 - 60_000 * Math.log(random())) };
  }
}

export async function writeResults(file: string, rows: number, encoding: Encoding): Promise<void> {
  const out = createWriteStream(file, { highWaterMark: bufferChars });
  let text = "";
  for (const request of requestsOf(rows)) {
    text += encoding === "csv" ? csvRow(request) : jsonRow(request);
    if (text.length < bufferChars) continue;
    if (!out.write(text)) await once(out, "drain");
    text = "";
  }
  out.end(text);
  await once(out, "close");
}

export function csvRow({ seq, sentNs, latencyNs }: MadeRequest): string {
  return `${sentNs},200,${latencyNs},0,256,,,,${seq},GET,${url},\n`;
}

function jsonRow({ seq, sentNs, latencyNs }: MadeRequest): string {
  const second = new Date(Number(sentNs / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const fraction = String(sentNs % 1_000_000_000n).padStart(9, "0");
  return (
    `{"attack":"","seq":${seq},"code":200,"timestamp":"${second}.${fraction}Z",` +
    `"latency":${latencyNs},"bytes_out":0,"bytes_in":256,"error":"","body":null,` +
    `"method":"GET","url":"${url}","headers":null}\n`
  );
}
