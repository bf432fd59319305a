/**
 * Renders the lease: one topology on the hosts at a time, and one campaign. It is taken on all
 * hosts in the order of the testbed document. Pure; the bash stands in `shell/lease.sh`.
 */
import { Failure } from "../contracts/failure.ts";
import type { Host } from "../contracts/testbed.ts";
import type { HostScript } from "./runner.ts";
import { quote, renderProgram, shellPart } from "./shell.ts";

export type LeaseRequest = {
  /** Who takes it; the same owner may take it again. */
  readonly owner: string;
  /** Stack to name to others, who must destroy it first. */
  readonly stack: string;
  /** Campaign on whose behalf it is taken; others are refused while one holds the hosts. */
  readonly campaignToken?: string;
};

/**
 * The first resource of a topology on a host: `create` takes the lease, or fails and names the
 * holder; `remove` gives it back if it is still ours.
 */
export function renderLease(host: Host, request: LeaseRequest): HostScript {
  const owner = leaseWord("owner", request.owner);
  const stack = leaseWord("stack", request.stack);
  const campaign = leaseWord("campaign", request.campaignToken ?? "-");
  return {
    prelude: prelude(host).join("\n"),
    create: `topology_lease_take ${owner} ${stack} ${campaign}`,
    remove: `lease_drop topology ${owner}`,
  };
}

/**
 * A program for `bash -s` on the host. `take` is refused while another campaign, or a topology of
 * somebody else, holds the host; `release` gives back only what is ours.
 *
 * @param token identifies the campaign, also over a resumption
 */
export function renderCampaignLease(host: Host, token: string, action: "take" | "release"): string {
  const word = leaseWord("campaign", token);
  const call = action === "take" ? `campaign_lease_take ${word}` : `lease_drop campaign ${word}`;
  return renderProgram(prelude(host), call);
}

function prelude(host: Host): string[] {
  return [`host=${quote(host.name)}`, shellPart("lease")];
}

/**
 * A quoted word of a lease. Leases are lines of a file, so nothing in them may break a line.
 *
 * @throws Failure `testbed`
 */
export function leaseWord(subject: string, text: string): string {
  if (/^[\x21-\x7e][\x20-\x7e]{0,199}$/.test(text)) return quote(text);
  throw new Failure(
    "testbed",
    `lease ${subject}: not usable, found ${JSON.stringify(text)}, ` +
      "allowed are 1 to 200 printable ASCII characters",
  );
}
