/** Fits of what a connection costs, against costs that are known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crossover, fitChurn, handshakeOf } from "../../../analysis/handshake.ts";

const counts = [1, 10, 100, Number.POSITIVE_INFINITY];
const points = (steady: number, opening: number, error = 1) =>
  counts.map((n) => ({ requestsPerConnection: n, cost: steady + opening / n, error }));

const near = (found: number, wanted: number, within = 1e-9) => {
  assert.ok(Math.abs(found - wanted) <= within, `${found}, wanted ${wanted}`);
};

test("exact costs give back what a request and what a connection costs", () => {
  const fit = fitChurn(points(120, 740));
  near(fit.steady, 120);
  near(fit.opening, 740);
  near(fit.misfit, 0);
  // 740 / (0.05 * 120): from 124 requests a connection on, opening is below 5 %.
  near(crossover(fit), 740 / 6);
});

test("a point that is known badly counts little", () => {
  const [first, ...rest] = points(100, 500);
  assert.ok(first);
  const fit = fitChurn([{ ...first, cost: 10_000, error: 1e9 }, ...rest]);
  near(fit.steady, 100, 1e-3);
  near(fit.opening, 500, 1e-1);
});

test("errors are those of a line through points of equal error", () => {
  // x = 1 and x = 0 with error 2: the slope's error is 2 * sqrt(2), the intercept's is 2.
  const fit = fitChurn([
    { requestsPerConnection: 1, cost: 30, error: 2 },
    { requestsPerConnection: Number.POSITIVE_INFINITY, cost: 10, error: 2 },
  ]);
  near(fit.opening, 20);
  near(fit.openingError, 2 * Math.SQRT2);
  near(fit.steadyError, 2);
  assert.equal(fit.misfit, 0);
});

test("costs that do not follow the line show as misfit", () => {
  const bent = points(100, 500).map((point, index) => ({
    ...point,
    cost: point.cost + (index === 1 ? 20 : 0),
  }));
  assert.ok(fitChurn(bent).misfit > 10);
});

test("the handshake is what opening costs more than over plain TCP", () => {
  const { cost, error } = handshakeOf(fitChurn(points(150, 740)), fitChurn(points(100, 90)));
  near(cost, 650);
  assert.ok(error > 0);
});

test("one count alone fits nothing", () => {
  assert.throws(() => fitChurn(points(1, 1).slice(0, 1)), /needs two counts or more, found 1/);
  assert.throws(() => fitChurn(points(1, 1, 0)), /greater than 0/);
});
