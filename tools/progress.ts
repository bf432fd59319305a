/** Lines that tell a waiting user what is being done, each with the time since the start. */

export type Progress = (message: string) => void;

/** Writes lines like `tools  12.3 s  building vegeta 12.11.0`. */
export function progressTo(write: (line: string) => void, now: () => number): Progress {
  const started = now();
  return (message) => {
    const elapsed = ((now() - started) / 1000).toFixed(1).padStart(6);
    write(`tools ${elapsed} s  ${message}\n`);
  };
}
