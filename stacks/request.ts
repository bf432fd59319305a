/** What every runtime is given to deploy. */
import type { LeaseRequest } from "../hosts/lease.ts";
import type { Topology } from "../topologies/model.ts";
import type { Parameters } from "../topologies/parameters.ts";
import type { DeployedTestbed } from "./testbed.ts";

export type TopologyRequest = {
  readonly topology: Topology;
  readonly parameters: Parameters;
  readonly lease: LeaseRequest;
  readonly deployed: DeployedTestbed;
};
