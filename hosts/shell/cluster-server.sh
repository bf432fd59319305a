# shellcheck shell=bash
# The authority and the control plane of our own cluster, on the host of the API server. Needs
# `host`, `authority`, the directory of keys and certificates, `names` of the API server as one
# subjectAltName, `server`, its address as a URL, and the functions of lease.sh. Keys never leave
# the host: others send requests and get certificates.

ec_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

make_authority() { # NAME COMMON-NAME
  ec_key "$1.key"
  openssl req -x509 -new -key "$1.key" -out "$1.crt" -days 365 -subj "/CN=$2"
}

sign() { # REQUEST AUTHORITY CERTIFICATE [NAMES]
  local extensions='keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth'
  [ -z "${4:-}" ] || extensions+=$'\n'"subjectAltName=$4"
  openssl x509 -req -in "$1" -CA "$2.crt" -CAkey "$2.key" -days 365 -out "$3" \
    -extfile <(printf '%s\n' "$extensions") 2>/dev/null
}

make_certificate() { # NAME AUTHORITY SUBJECT [NAMES]
  ec_key "$1.key"
  openssl req -new -key "$1.key" -subj "$3" -out "$1.csr"
  sign "$1.csr" "$2" "$1.crt" "${4:-}"
  rm "$1.csr"
}

# A kubeconfig whose certificate and key stand in files beside it.
kubeconfig() { # NAME
  cat <<END
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "$server", certificate-authority: ca.crt}}]
users: [{name: $1, user: {client-certificate: $1.crt, client-key: $1.key}}]
contexts: [{name: cluster, context: {cluster: cluster, user: $1}}]
current-context: cluster
END
}

authority_create() {
  local name
  if [ ! -e "$authority/complete" ]; then
    rm -rf "$authority"
    umask 077
    mkdir -p "$authority"
    cd "$authority"
    make_authority ca ztbench-cluster
    make_authority front-proxy-ca ztbench-front-proxy
    ec_key accounts.key
    openssl pkey -in accounts.key -pubout -out accounts.pub
    make_certificate apiserver ca /CN=kube-apiserver "$names"
    make_certificate apiserver-kubelet ca /O=system:masters/CN=kube-apiserver
    make_certificate front-proxy front-proxy-ca /CN=front-proxy
    make_certificate admin ca /O=system:masters/CN=ztbench-admin
    make_certificate controller-manager ca /CN=system:kube-controller-manager
    make_certificate scheduler ca /CN=system:kube-scheduler
    for name in admin controller-manager scheduler; do kubeconfig "$name" >"$name.kubeconfig"; done
    touch complete
  fi
  base64 -w0 "$authority/ca.crt"
}

authority_remove() {
  rm -rf "$authority"
  rmdir --ignore-fail-on-non-empty "${authority%/*}" 2>/dev/null || :
}

# Reads lines of `requests`: name, subjectAltName or `-`, request in base64; prints lines of name
# and certificate in base64.
signing_create() {
  local name names request scratch
  cd "$authority"
  scratch=$(mktemp -d)
  while read -r name names request; do
    base64 -d <<<"$request" >"$scratch/csr"
    [ "$names" != - ] || names=''
    sign "$scratch/csr" ca "$scratch/crt" "$names"
    printf '%s %s\n' "$name" "$(base64 -w0 "$scratch/crt")"
  done <<<"$requests"
  rm -rf "$scratch"
}

# The kubeconfig of the administrator, whole, for another machine. Secret.
kubeconfig_create() {
  cd "$authority"
  cat <<END
apiVersion: v1
kind: Config
clusters:
  - name: ztbench
    cluster:
      server: $server
      certificate-authority-data: $(base64 -w0 ca.crt)
users:
  - name: admin
    user:
      client-certificate-data: $(base64 -w0 admin.crt)
      client-key-data: $(base64 -w0 admin.key)
contexts:
  - name: ztbench
    context: {cluster: ztbench, user: admin}
current-context: ztbench
END
}

# Waits until the API server is ready, and gives those rights that it does not give by itself.
# Needs `kubectl`, `wait_seconds`, and `objects`, which prints the manifests.
api_create() {
  local deadline=$((SECONDS + wait_seconds)) said=''
  until said=$("${admin[@]}" get --raw /readyz 2>&1) &&
    said=$(objects | "${admin[@]}" apply --server-side --force-conflicts -f - 2>&1); do
    ((SECONDS < deadline)) ||
      refuse "cluster: API server $server is not ready after $wait_seconds s: ${said##*$'\n'}" \
        "journalctl -u ztcluster-apiserver on $host" || return 1
    sleep 0.1
  done
}

# The words that ask the API server as administrator; few tasks need them.
admin=("${kubectl:-}" --kubeconfig "$authority/admin.kubeconfig" --request-timeout 5s)

# Facts of the cluster as blocks, see facts.sh. Needs `programs`, the directory.
cluster_facts_create() {
  fact cluster-identifier "${admin[@]}" get namespace kube-system -o 'jsonpath={.metadata.uid}'
  fact version-apiserver bash -c '"$@" get --raw /version | sed -n "s/.*gitVersion.: .\(.*\)[\"],/\1/p"' \
    version "${admin[@]}"
  fact version-controller-manager "$programs/kube-controller-manager" --version
  fact version-scheduler "$programs/kube-scheduler" --version
  fact version-etcd bash -c '"$1" --version | sed -n "s/^etcd Version: //p"' version "$programs/etcd"
}
