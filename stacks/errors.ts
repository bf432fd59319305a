/**
 * Keeps failures of a Pulumi program quick and readable; `main.ts` imports it first.
 *
 * Pulumi prints an uncaught error with util.inspect in colour. On Node 20 that takes about a
 * minute for a frame whose wrongly mapped source is `node_modules/@pulumi/resource.ts`, and every
 * Pulumi stack has one. Without the frames of dependencies it takes no time, and what remains is
 * what a reader wants.
 */
const foreignFrame = /^\s+at .*(?:node_modules|node:internal)/;

function dropForeignFrames(error: unknown): void {
  if (!(error instanceof Error)) return;
  const lines = error.stack?.split("\n").filter((line) => !foreignFrame.test(line));
  if (lines !== undefined) error.stack = lines.join("\n");
  dropForeignFrames(error.cause);
}

process.prependListener("uncaughtException", dropForeignFrames);
process.prependListener("unhandledRejection", dropForeignFrames);

// Pulumi installs source-map-support, which does not know the maps of tsx. Without it Node
// applies them itself, so that frames name the right lines.
delete (Error as { prepareStackTrace?: unknown }).prepareStackTrace;
