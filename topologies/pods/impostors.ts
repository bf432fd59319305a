/** Certificates that probes of a mesh in a cluster try, made on the control plane's host. Pure. */
import { kubectlOf } from "../../hosts/cluster/cluster.ts";
import type { PayloadStep } from "../../hosts/payload.ts";
import { rootNamespace } from "../istio.ts";
import { impostorArguments } from "../trust.ts";
import { clusterOf, type PodContext, podsRootOf } from "./place.ts";

/** Directory of the certificates on the control plane's host. */
export function podImpostorDirectoryOf(context: Pick<PodContext, "topology">): string {
  return `${podsRootOf(context.topology)}/impostors`;
}

/** What was given to Istio first, then what it made itself. */
const authorities = ["cacerts", "istio-ca-secret"] as const;

/**
 * The authority's key stays on the host whose API server stores it anyway, and no longer than the
 * certificates take.
 */
export function impostorStep(context: PodContext): PayloadStep {
  const { topology, testbed, programs } = context;
  const authority = `${podsRootOf(topology)}/authority`;
  const ask = kubectlOf(clusterOf(testbed).kind);
  const template = `{{range $name, $value := .data}}{{$name}} {{$value}}{{"\\n"}}{{end}}`;
  return {
    make: [
      `mkdir ${authority}`,
      `for secret in ${authorities.join(" ")}; do`,
      `  while read -r name value; do`,
      `    case $name in`,
      `      *.pem) base64 -d <<<"$value" >"${authority}/$name" ;;`,
      "    esac",
      `  done < <(${ask} --namespace ${rootNamespace} get secret "$secret" \\`,
      `    --output go-template='${template}' 2>/dev/null)`,
      `  [ ! -s ${authority}/ca-key.pem ] || break`,
      "done",
      `[ -s ${authority}/ca-key.pem ] ||`,
      `  fail 'mesh: its authority is not in the cluster, one of the secrets` +
        ` ${authorities.join(" or ")} expected' 'pulumi up -s cluster'`,
      // Its own root, if it has signed itself.
      `[ -s ${authority}/root-cert.pem ] ||`,
      `  cp ${authority}/ca-cert.pem ${authority}/root-cert.pem`,
      `${programs}/ztca impostors -dir ${authority} -out ${podImpostorDirectoryOf(context)} ` +
        impostorArguments.join(" "),
      `rm -rf ${authority}`,
    ].join("\n"),
    undo: ":",
    left: ":",
  };
}
