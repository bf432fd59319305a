/** Runs a program and says what it used. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";

export type Usage = {
  readonly seconds: number;
  /** Of all its threads, user and system; what others do on the machine does not count. */
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly output: string;
};

const watchMs = 10;
const ticksPerSecond = 100;

/**
 * Peak memory is the kernel's own high-water mark of the process, read while it lives.
 *
 * @throws Error if the program fails
 */
export async function use(program: string, args: readonly string[]): Promise<Usage> {
  const began = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  let [peakKiB, ticks] = [0, 0];
  const look = async (): Promise<void> => {
    const process = `/proc/${child.pid ?? 0}`;
    const status = await readFile(`${process}/status`, "utf8");
    peakKiB = Math.max(peakKiB, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    // utime and stime, the 12th and 13th field behind the name, which may hold blanks.
    const fields = (await readFile(`${process}/stat`, "utf8")).split(") ").at(-1)?.split(" ") ?? [];
    ticks = Math.max(ticks, Number(fields[11]) + Number(fields[12]));
  };
  const watch = setInterval(() => void look().catch(() => undefined), watchMs);
  const [code] = (await once(child, "close")) as [number | null];
  clearInterval(watch);
  if (code !== 0) throw new Error(`${path.basename(program)}: exit code ${code ?? "none"}`);
  const seconds = (performance.now() - began) / 1000;
  return {
    seconds,
    cpuSeconds: ticks / ticksPerSecond,
    peakMiB: peakKiB / 1024,
    output: Buffer.concat(chunks).toString(),
  };
}
