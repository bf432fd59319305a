/** A separate process that raises a lab, so that tests can kill it: NAME NETWORK STATE_DIR. */
import { labUp } from "../../hosts/lab/lab.ts";

const [name = "", network = "", stateDir = ""] = process.argv.slice(2);
const progress = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
await labUp({ name, network: Number(network), stateDir, progress });
