// Command ztvalidate reads objects of Kubernetes on standard input and lets Istio's own library
// judge those that are Istio's. With -template and -values it prints the objects instead, with the
// sidecars that Istio's injector would add to pods.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/resource"
	"istio.io/istio/pkg/kube/inject"

	"k8s.io/apimachinery/pkg/util/yaml"
)

const inputBytes = 16 << 20

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "ztvalidate: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	template := flag.String("template", "", "`file` with the injector's template of a sidecar")
	values := flag.String("values", "", "`file` with the values of Istio's chart")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("argument: not known, %q, want flags only", flag.Arg(0))
	}
	text, err := io.ReadAll(io.LimitReader(in, inputBytes))
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if *template != "" {
		return injectInto(text, *template, *values, out)
	}
	return validate(text, out)
}

// validate prints a line for each object of Istio, and fails with all that is wrong with them.
func validate(text []byte, out io.Writer) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var problems []error
	for {
		var object crd.IstioKind
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return errors.Join(problems...)
		} else if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		kind := object.GroupVersionKind()
		schema, found := collections.PilotGatewayAPI().FindByGroupVersionAliasesKind(
			resource.FromKubernetesGVK(&kind))
		if !found {
			if strings.HasSuffix(kind.Group, "istio.io") {
				problems = append(problems, fmt.Errorf("%s %s: no such kind", kind, object.Name))
			}
			continue
		}
		subject := fmt.Sprintf("%s %s/%s", kind.Kind, object.Namespace, object.Name)
		warning, err := judge(schema, &object)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", subject, err))
		} else if warning != nil {
			problems = append(problems, fmt.Errorf("%s: warning: %w", subject, warning))
		} else {
			fmt.Fprintf(out, "%s: valid\n", subject)
		}
	}
}

func judge(schema resource.Schema, object crd.IstioObject) (warning, err error) {
	converted, err := crd.ConvertObjectInternal(schema, object, "cluster.local", strictly)
	if err != nil {
		return nil, err
	}
	return schema.ValidateConfig(*converted)
}

// strictly refuses fields that are not known.
func strictly(schema resource.Schema, text string) (config.Spec, error) {
	spec, err := schema.NewInstance()
	if err != nil {
		return nil, err
	}
	return spec, config.ApplyJSONStrict(spec, text)
}

// injectInto prints the objects as the cluster would store them once the injector has seen them.
func injectInto(text []byte, templateFile, valuesFile string, out io.Writer) error {
	template, err := os.ReadFile(templateFile)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	values, err := os.ReadFile(valuesFile)
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	templates, err := inject.ParseTemplates(inject.RawTemplates{
		inject.SidecarTemplateName: string(template),
	})
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	read, err := inject.NewValuesConfig(string(values))
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	return inject.IntoResourceFile(nil, templates, read, "default", mesh.DefaultMeshConfig(),
		bytes.NewReader(text), out, func(string) {})
}
