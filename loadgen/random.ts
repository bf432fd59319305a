/** A small seeded generator, so that an order can be reproduced from the plan in any language. */

const mask = (1n << 64n) - 1n;

/** Draws whole numbers below a bound. */
export type Draw = (bound: number) => number;

/**
 * SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), each output cut to its upper 32 bits.
 * Draws above the largest multiple of the bound are thrown away, so that no number is favoured.
 */
export function seededDraw(seed: number): Draw {
  const next = splitMix64(BigInt(seed));
  return (bound) => {
    if (!Number.isInteger(bound) || bound < 1 || bound > 2 ** 31) {
      throw new RangeError(`draw: bound must be a whole number in [1, 2^31], found ${bound}`);
    }
    const limit = 2 ** 32 - (2 ** 32 % bound);
    // Each try succeeds with a chance above one half: 128 failures in a row do not happen.
    for (let tries = 0; tries < 128; tries++) {
      const value = Number(next() >> 32n);
      if (value < limit) return value % bound;
    }
    throw new Error("draw: no number below the limit in 128 tries");
  };
}

/** The generator itself: 64-bit outputs from a 64-bit state that grows by the golden ratio. */
export function splitMix64(seed: bigint): () => bigint {
  let state = seed & mask;
  return () => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
    return z ^ (z >> 31n);
  };
}

/** A random permutation (Fisher and Yates, from the last place down); the input is left alone. */
export function shuffled<T>(items: readonly T[], draw: Draw): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const chosen = draw(last + 1);
    const moved = result[chosen] as T;
    result[chosen] = result[last] as T;
    result[last] = moved;
  }
  return result;
}
