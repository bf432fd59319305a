/**
 * Counts as the V2 encoding of HdrHistogram has them behind its head: one number a bucket, runs of
 * empty ones as their negative length, each as ZigZag LEB128.
 */

/** More than any number takes: counts are exact below 2^53. */
const numberBytesMax = 9;
let scratch = Buffer.alloc(0);

/**
 * The head, with the length filled in, and the counts of all buckets before `end`.
 *
 * @param head of an encoded histogram of the same configuration
 * @param from first bucket that may hold something
 * @returns bytes that the next call overwrites
 */
export function payloadOf(head: Buffer, counts: Float64Array, from: number, end: number): Buffer {
  const most = head.length + numberBytesMax * counts.length;
  if (scratch.length < most) scratch = Buffer.alloc(most);
  head.copy(scratch);
  let at = head.length;
  // An empty histogram has one bucket, too.
  for (let bucket = 0, last = Math.max(1, end); bucket < last;) {
    const count = counts[bucket] ?? 0;
    const start = bucket;
    bucket = Math.max(bucket + 1, from);
    if (count === 0) while (bucket < last && counts[bucket] === 0) bucket += 1;
    const run = bucket - start;
    // ZigZag: a positive number is doubled, a negative one is the odd number below its double.
    at = putNumber(scratch, at, count === 0 && run > 1 ? 2 * run - 1 : 2 * count);
  }
  scratch.writeInt32BE(at - head.length, 4);
  return scratch.subarray(0, at);
}

/** Seven bits a byte, the lowest first; returns where the next number goes. */
function putNumber(bytes: Buffer, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) {
    bytes[at] = (rest % 128) + 128;
    at += 1;
  }
  bytes[at] = rest;
  return at + 1;
}
