/**
 * What a connection costs by itself: the series of requests on connections of their own that a run
 * sends after its load, outside of everything that is measured.
 */
import { z } from "zod";
import { parseDocument } from "../contracts/document.ts";
import { type Cell, none, value } from "./cell.ts";
import { median } from "./statistics.ts";

/** File of the run that holds the series. */
export const connectFile = "connect.json";

const ns = z.int().nonnegative();

const connectSchema = z.strictObject({
  schema: z.literal("ztbench/connect/1"),
  connections: z.array(
    z.strictObject({
      connectNs: ns,
      handshakeNs: ns,
      firstByteNs: ns,
      status: z.int(),
      bytes: ns,
      sha256: z.string(),
      error: z.string().optional(),
    }),
  ),
});

export type ConnectSeries = {
  readonly asked: number;
  /** Medians over connections that were answered with 2xx. */
  readonly connectNs: Cell;
  readonly firstByteNs: Cell;
  /** Bodies of those: how many of each length, and how many different ones. */
  readonly bytes: Readonly<Record<string, number>>;
  readonly bodies: number;
  /** Why others were not answered. */
  readonly failures: readonly string[];
};

/**
 * @throws Failure `document` if the text is no such series
 */
export function readConnect(text: string, name: string): ConnectSeries {
  const { connections } = parseDocument(connectSchema, text, name);
  const isAnswered = ({ status, error }: (typeof connections)[number]): boolean =>
    error === undefined && status >= 200 && status < 300;
  const answered = connections.filter(isAnswered);
  const middle = (key: "connectNs" | "firstByteNs"): Cell =>
    answered.length === 0
      ? none("no connection was answered")
      : value(median(answered.map((one) => one[key])), "ns");
  const bytes: Record<string, number> = {};
  for (const one of answered) bytes[one.bytes] = (bytes[one.bytes] ?? 0) + 1;
  return {
    asked: connections.length,
    connectNs: middle("connectNs"),
    firstByteNs: middle("firstByteNs"),
    bytes,
    bodies: new Set(answered.map(({ sha256 }) => sha256)).size,
    failures: connections
      .filter((one) => !isAnswered(one))
      .map(({ status, error }) => error ?? `status ${status}`),
  };
}
