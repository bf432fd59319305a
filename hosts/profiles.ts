/** Chooses the knobs of a host: the profile that the testbed document names, filled in. */
import { addressOfNumber, numberOfAddress } from "../contracts/ipv4.ts";
import type { Host, Testbed } from "../contracts/testbed.ts";
import type { Knob } from "./knobs.ts";
import { reproKnobs } from "./profiles/repro.ts";
import { stockKnobs } from "./profiles/stock.ts";

/** The knobs of a testbed's profile on one of its hosts, in the order they are turned. */
export function knobsOf(testbed: Testbed, host: Host): readonly Knob[] {
  switch (testbed.tuningProfile) {
    case "repro":
      return reproKnobs({
        nic: host.nic,
        cpus: host.cpus,
        dataNetwork: networkOf(testbed.dataNetwork),
        clusterKind: testbed.clusterKind,
        smt: testbed.hardware?.smt ?? "off",
      });
    case "stock":
      return stockKnobs();
  }
}

/** A network as the kernel prints it: the address bits after the prefix are zero. */
export function networkOf(cidr: string): string {
  const [address = "", length = "32"] = cidr.split("/");
  const size = 2 ** (32 - Number(length));
  const network = Math.floor(numberOfAddress(address) / size) * size;
  return `${addressOfNumber(network)}/${length}`;
}
