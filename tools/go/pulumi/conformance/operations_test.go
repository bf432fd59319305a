package conformance

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

const (
	localCommand  = "command:local:Command"
	remoteCommand = "command:remote:Command"
	copyToRemote  = "command:remote:CopyToRemote"
)

// props abbreviates the inputs of a resource.
type props = map[string]any

var wire = plugin.MarshalOptions{KeepSecrets: true, KeepUnknowns: true, KeepResources: true}

// secret marks an input secret.
func secret(v any) resource.PropertyValue {
	return resource.MakeSecret(resource.NewPropertyValue(v))
}

func marshal(t *testing.T, p props) *structpb.Struct {
	t.Helper()
	s, err := plugin.MarshalProperties(resource.NewPropertyMapFromMap(p), wire)
	must(t, err)
	return s
}

func unmarshal(t *testing.T, s *structpb.Struct) resource.PropertyMap {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, wire)
	must(t, err)
	return m
}

func urnOf(typ string) string { return "urn:pulumi:test::conformance::" + typ + "::it" }

// deployed is a resource as the engine knows it after an operation.
type deployed struct {
	typ, id string
	inputs  props
	state   *structpb.Struct
	outputs resource.PropertyMap
}

func (d deployed) text(key resource.PropertyKey) string {
	v := d.outputs[key]
	if v.IsSecret() {
		v = v.SecretValue().Element
	}
	if !v.IsString() {
		return ""
	}
	return v.StringValue()
}

func (p *pluginProcess) create(t *testing.T, typ string, inputs props) (deployed, error) {
	t.Helper()
	return p.createWithin(t, typ, inputs, 0)
}

// createWithin creates with a customTimeout in seconds.
func (p *pluginProcess) createWithin(
	t *testing.T, typ string, inputs props, seconds float64,
) (deployed, error) {
	t.Helper()
	resp, err := p.Create(bounded(t), &pulumirpc.CreateRequest{
		Urn: urnOf(typ), Name: "it", Type: typ, Properties: marshal(t, inputs), Timeout: seconds,
	})
	if err != nil {
		return deployed{}, err
	}
	return deployed{
		typ: typ, id: resp.GetId(), inputs: inputs,
		state: resp.GetProperties(), outputs: unmarshal(t, resp.GetProperties()),
	}, nil
}

func (p *pluginProcess) mustCreate(t *testing.T, typ string, inputs props) deployed {
	t.Helper()
	d, err := p.create(t, typ, inputs)
	must(t, err)
	return d
}

func (p *pluginProcess) mustUpdate(t *testing.T, d deployed, inputs props) deployed {
	t.Helper()
	resp, err := p.Update(bounded(t), &pulumirpc.UpdateRequest{
		Id: d.id, Urn: urnOf(d.typ), Name: "it", Type: d.typ,
		Olds: d.state, OldInputs: marshal(t, d.inputs), News: marshal(t, inputs),
	})
	must(t, err)
	return deployed{
		typ: d.typ, id: d.id, inputs: inputs,
		state: resp.GetProperties(), outputs: unmarshal(t, resp.GetProperties()),
	}
}

func (p *pluginProcess) mustDelete(t *testing.T, d deployed) {
	t.Helper()
	_, err := p.Delete(bounded(t), &pulumirpc.DeleteRequest{
		Id: d.id, Urn: urnOf(d.typ), Name: "it", Type: d.typ,
		Properties: d.state, OldInputs: marshal(t, d.inputs),
	})
	must(t, err)
}

// diff tells whether new inputs change a resource, and whether they replace it.
func (p *pluginProcess) diff(t *testing.T, d deployed, inputs props) (changes, replaces bool) {
	t.Helper()
	resp, err := p.Diff(bounded(t), &pulumirpc.DiffRequest{
		Id: d.id, Urn: urnOf(d.typ), Name: "it", Type: d.typ,
		Olds: d.state, OldInputs: marshal(t, d.inputs), News: marshal(t, inputs),
	})
	must(t, err)
	return resp.GetChanges() == pulumirpc.DiffResponse_DIFF_SOME, len(resp.GetReplaces()) > 0
}

// complaints are the properties that the provider refuses.
func (p *pluginProcess) complaints(t *testing.T, typ string, inputs props) []string {
	t.Helper()
	resp, err := p.Check(bounded(t), &pulumirpc.CheckRequest{
		Urn: urnOf(typ), Name: "it", Type: typ, News: marshal(t, inputs),
	})
	must(t, err)
	var names []string
	for _, failure := range resp.GetFailures() {
		names = append(names, failure.GetProperty())
	}
	return names
}

// with is inputs with some of them set differently.
func with(inputs, changes props) props {
	result := props{}
	for key, value := range inputs {
		result[key] = value
	}
	for key, value := range changes {
		result[key] = value
	}
	return result
}
