/** The verb `report`: makes the tables of a bundle anew and prints the comparison. */
import path from "node:path";
import { htmlFile } from "../analysis/report.ts";
import { deriveResults } from "./results.ts";
import { readArguments, type Verb } from "./verb.ts";

const usage = `./ztbench report BUNDLE [--json]

Verifies the bundle's checksums, computes everything from its raw files and writes BUNDLE/tables/.`;

export const report: Verb = {
  summary: "compute the tables of a bundle from its raw files and print the comparison",
  usage,
  async run(argv, io) {
    const options = { json: { type: "boolean" } } as const;
    const { values, positionals } = readArguments(argv, options, { least: 1, most: 1 }, usage);
    const bundleDir = path.resolve(positionals[0] ?? "");
    io.print((await deriveResults(bundleDir, values.json === true)).shown);
    io.say(`report: ${path.join(bundleDir, htmlFile)}`);
    return 0;
  },
};
