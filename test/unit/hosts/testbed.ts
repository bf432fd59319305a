/** A testbed for the tests of this directory. */
import { type Testbed, testbedSchema } from "../../../contracts/testbed.ts";

export function exampleTestbed(changes: Partial<Testbed> = {}): Testbed {
  const host = (role: string, octet: number) => ({
    name: role,
    role,
    managementAddress: `198.18.31.${octet}`,
    identityFile: "/nowhere/id",
    hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    dataAddress: `198.18.0.${octet}`,
    nic: "data0",
    cpus: { system: "", irq: "", load: "0", proxy: "1", service: "1" },
  });
  return testbedSchema.parse({
    schema: "ztbench/testbed/1",
    name: "example",
    class: "metal",
    hosts: [host("client", 10), host("gateway", 20), host("server", 30)],
    dataNetwork: "198.18.0.0/24",
    scheduling: "other",
    ...changes,
  });
}

export function exampleHost(testbed: Testbed = exampleTestbed()) {
  const host = testbed.hosts[0];
  if (host === undefined) throw new Error("the example has hosts");
  return host;
}
