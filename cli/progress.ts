/** Shows the progress of a campaign: one line per run, with the time left. */
import type { CampaignEvent, CampaignProgress } from "../loadgen/progress.ts";

/** Writes a line for each event that a user wants to see while waiting. */
export function progressTo(say: (line: string) => void): CampaignProgress {
  let of = 0;
  return (event) => {
    if (event.kind === "run") of = event.of;
    const line = describeEvent(event, of);
    if (line !== undefined) say(line);
  };
}

/** @returns undefined for events that are not worth a line */
export function describeEvent(event: CampaignEvent, of: number): string | undefined {
  switch (event.kind) {
    case "estimate":
      return `campaign: ${event.runs} runs, about ${spellDuration(event.seconds)}`;
    case "notice":
      return `note: ${event.text}`;
    case "finished": {
      const { run, failure, seconds, secondsLeft } = event;
      const width = String(of).length;
      const head = `run ${String(run.run).padStart(width)}/${of}  block ${run.block}`;
      const name = run.arm === "a" ? run.label : `${run.label} (again)`;
      const end = failure === undefined ? "" : `  BROKE OFF: ${failure.split("\n")[0] ?? ""}`;
      const left = secondsLeft > 0 ? `, ${spellDuration(secondsLeft)} left` : "";
      return `${head}  ${name.padEnd(20)} ${seconds.toFixed(1)} s${left}${end}`;
    }
    case "run":
    case "phase":
      return undefined;
  }
}

/** `45 s`, `3 min`, `2 h 5 min`. */
export function spellDuration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
