/** A testbed that tests render on; nothing in it exists. */
import { type Testbed, testbedSchema } from "../../../contracts/testbed.ts";

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleE";

function host(role: string, last: number, cpus: Record<string, string>) {
  return {
    name: role,
    role,
    managementAddress: `198.18.16.${last}`,
    identityFile: "id",
    hostKey,
    dataAddress: `198.18.0.${last}`,
    nic: "data0",
    cpus: { system: "0", irq: "", load: "", proxy: "", service: "", ...cpus },
  };
}

export const exampleTestbed: Testbed = testbedSchema.parse({
  schema: "ztbench/testbed/1",
  name: "example",
  class: "lab",
  instance: "0123456789abcdef",
  hosts: [
    host("client", 10, { load: "0" }),
    host("gateway", 20, { proxy: "1-2" }),
    host("server", 30, { service: "1,3-5" }),
  ],
  dataNetwork: "198.18.0.0/24",
  scheduling: "rr",
});
