/** Reads which CPUs a machine has, as lscpu prints them with `--json --extended=…`. Pure. */
import { z } from "zod";
import { Failure } from "../contracts/failure.ts";

export type CpuPlace = {
  readonly cpu: number;
  /** NUMA node. */
  readonly node: number;
  readonly socket: number;
  /** Core; two CPUs of one core are its threads. */
  readonly core: number;
};

/** Older versions print numbers as text, and a CPU that is offline has no core. */
const number = z.coerce.number().int().nonnegative();
const schema = z.object({
  cpus: z
    .array(
      z.object({
        cpu: number,
        node: number.nullable(),
        socket: number.nullable(),
        core: number.nullable(),
      }),
    )
    .min(1),
});

const command = "lscpu --json --extended=CPU,NODE,SOCKET,CORE";

/**
 * Reads what lscpu printed; CPUs that are offline are left out.
 *
 * @throws Failure `document` if it is something else
 */
export function parseLscpu(text: string): CpuPlace[] {
  const read = schema.safeParse(parseJson(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    const place = issue?.path.join(".") ?? "";
    throw notLscpu(`${place === "" ? "" : `${place}: `}${issue?.message ?? "not understood"}`);
  }
  return read.data.cpus.flatMap(({ cpu, node, socket, core }) =>
    socket === null || core === null ? [] : [{ cpu, node: node ?? 0, socket, core }],
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw notLscpu(error instanceof Error ? error.message : String(error));
  }
}

function notLscpu(problem: string): Failure {
  return new Failure("document", `lscpu: output is not understood, ${problem}`, { hint: command });
}
