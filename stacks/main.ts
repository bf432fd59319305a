/** Entry of every stack: the stack's name says which program runs. */
import "./errors.ts";

// Imported late, so that failures to load the program are reported quickly, too.
export default async function main(): Promise<Record<string, unknown>> {
  const { program } = await import("./program.ts");
  return program();
}
