/**
 * What a new connection costs beside a request: cost c(n) = c_s + c_h / n of a request on
 * connections that carry n requests, fitted by weighted least squares. Pure.
 */

/** Cost of one request on connections that carry n requests each. */
export type ChurnPoint = {
  /** Infinity: connections are never closed. */
  readonly requestsPerConnection: number;
  readonly cost: number;
  /** Standard error of the cost, greater than 0. */
  readonly error: number;
};

export type ChurnFit = {
  /** c_s: a request on a connection that is there. */
  readonly steady: number;
  readonly steadyError: number;
  /** c_h: opening a connection. */
  readonly opening: number;
  readonly openingError: number;
  /** Sum of squared residuals in units of their errors, over points less two; 0 of two points. */
  readonly misfit: number;
};

/**
 * Weighted least squares of cost on 1/n, weights 1/error².
 *
 * @throws RangeError below two different n, or for an error that is not positive
 */
export function fitChurn(points: readonly ChurnPoint[]): ChurnFit {
  const counts = new Set(points.map(({ requestsPerConnection }) => requestsPerConnection));
  if (counts.size < 2) throw new RangeError(`fit: needs two counts or more, found ${counts.size}`);
  if (!points.every(({ error }) => error > 0)) {
    throw new RangeError("fit: every error must be greater than 0");
  }
  const rows = points.map(({ requestsPerConnection, cost, error }) => ({
    x: 1 / requestsPerConnection,
    y: cost,
    w: 1 / error ** 2,
  }));
  const total = (of: (row: (typeof rows)[number]) => number) =>
    rows.reduce((sum, row) => sum + of(row), 0);
  const w = total((row) => row.w);
  const x = total((row) => row.w * row.x) / w;
  const y = total((row) => row.w * row.y) / w;
  const spread = total((row) => row.w * (row.x - x) ** 2);
  const opening = total((row) => row.w * (row.x - x) * (row.y - y)) / spread;
  const steady = y - opening * x;
  const squares = total((row) => row.w * (row.y - steady - opening * row.x) ** 2);
  return {
    steady,
    steadyError: Math.sqrt(1 / w + x ** 2 / spread),
    opening,
    openingError: Math.sqrt(1 / spread),
    misfit: points.length > 2 ? squares / (points.length - 2) : 0,
  };
}

/** Opening a connection is this share of a request's cost at the crossover. */
export const crossoverShare = 0.05;

/** Requests per connection from which on opening is less than the share: n* = c_h / (0.05 c_s). */
export function crossover({ steady, opening }: Pick<ChurnFit, "steady" | "opening">): number {
  return opening / (crossoverShare * steady);
}

/** The TLS handshake alone: what opening costs more than over plain TCP. */
export function handshakeOf(
  tls: ChurnFit,
  plain: ChurnFit,
): { readonly cost: number; readonly error: number } {
  return {
    cost: tls.opening - plain.opening,
    error: Math.hypot(tls.openingError, plain.openingError),
  };
}
