// Command pulumi-resource-kubernetes serves the upstream Kubernetes provider.
//
// Upstream's own main package embeds generated files that its Go module does not carry, so this
// one stands in their place. A schema with only a name is enough, because Node.js programs get
// their types from the npm package.
package main

import (
	"fmt"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// version is that of the npm package; the build sets it.
var version = "0.0.0-dev"

func main() {
	const noTerraformMapping = `{}`
	schema := fmt.Sprintf(`{"name":"kubernetes","version":%q}`, version)
	provider.Serve("kubernetes", version, []byte(schema), []byte(noTerraformMapping))
}
