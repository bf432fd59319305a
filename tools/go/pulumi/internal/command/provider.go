// Package command is a Pulumi provider that runs commands on this machine and,
// over SSH, on others.
package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

const (
	localCommand  tokens.Type         = "command:local:Command"
	remoteCommand tokens.Type         = "command:remote:Command"
	copyToRemote  tokens.Type         = "command:remote:CopyToRemote"
	localRun      tokens.ModuleMember = "command:local:run"
)

// inputNames are the properties that a program may set; required ones end in !.
var inputNames = map[tokens.Type][]string{
	localCommand: {
		"create", "update", "delete", "environment", "stdin", "logging", "triggers",
		"addPreviousOutputInEnv", "dir", "interpreter",
	},
	remoteCommand: {
		"create", "update", "delete", "environment", "stdin", "logging", "triggers",
		"addPreviousOutputInEnv", "connection!",
	},
	copyToRemote: {"connection!", "source!", "remotePath!", "triggers"},
}

// Provider implements the resources of package command.
type Provider struct {
	plugin.UnimplementedProvider

	version string
	ctx     context.Context // ends when the engine cancels the deployment
	cancel  context.CancelFunc
	log     *engineLog
}

// NewProvider makes a provider whose operations end when ctx does. It reports
// their progress to the engine at the given address, if there is one.
func NewProvider(ctx context.Context, version, engine string) (*Provider, error) {
	log, err := newEngineLog(engine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Provider{version: version, ctx: ctx, cancel: cancel, log: log}, nil
}

func (p *Provider) Pkg() tokens.Package { return "command" }

func (p *Provider) Close() error { return nil }

func (p *Provider) SignalCancellation(context.Context) error {
	p.cancel()
	return nil
}

func (p *Provider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	v, err := semver.ParseTolerant(p.version)
	if err != nil {
		return plugin.PluginInfo{}, err
	}
	return plugin.PluginInfo{Version: &v}, nil
}

func (p *Provider) Handshake(
	context.Context, plugin.ProviderHandshakeRequest,
) (*plugin.ProviderHandshakeResponse, error) {
	return &plugin.ProviderHandshakeResponse{AcceptSecrets: true}, nil
}

func (p *Provider) GetSchema(
	context.Context, plugin.GetSchemaRequest,
) (plugin.GetSchemaResponse, error) {
	return plugin.GetSchemaResponse{
		Schema: []byte(fmt.Sprintf(`{"name":"command","version":%q}`, p.version)),
	}, nil
}

func (p *Provider) CheckConfig(
	_ context.Context, req plugin.CheckConfigRequest,
) (plugin.CheckConfigResponse, error) {
	return plugin.CheckConfigResponse{Properties: req.News}, nil
}

func (p *Provider) DiffConfig(
	context.Context, plugin.DiffConfigRequest,
) (plugin.DiffConfigResponse, error) {
	return plugin.DiffResult{Changes: plugin.DiffNone}, nil
}

func (p *Provider) Configure(
	context.Context, plugin.ConfigureRequest,
) (plugin.ConfigureResponse, error) {
	return plugin.ConfigureResponse{}, nil
}

func (p *Provider) Check(
	_ context.Context, req plugin.CheckRequest,
) (plugin.CheckResponse, error) {
	names, ok := inputNames[req.Type]
	if !ok {
		return plugin.CheckResponse{}, fmt.Errorf("resource type %s is not supported", req.Type)
	}
	resp := plugin.CheckResponse{Properties: req.News}
	for _, name := range names {
		key, required := strings.CutSuffix(name, "!")
		if required && !req.News.HasValue(resource.PropertyKey(key)) {
			resp.Failures = append(resp.Failures, plugin.CheckFailure{
				Property: resource.PropertyKey(key), Reason: "required property is missing",
			})
		}
	}
	for key, value := range req.News {
		if !slices.Contains(names, string(key)) && !slices.Contains(names, string(key)+"!") &&
			!value.IsNull() && !resource.IsInternalPropertyKey(key) {
			resp.Failures = append(resp.Failures, plugin.CheckFailure{
				Property: key, Reason: "property is not supported",
			})
		}
	}
	return resp, nil
}

// Diff compares inputs. A changed trigger replaces; everything else updates.
func (p *Provider) Diff(
	_ context.Context, req plugin.DiffRequest,
) (plugin.DiffResponse, error) {
	diff := req.OldInputs.Diff(req.NewInputs)
	if diff == nil {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}
	result := plugin.DiffResult{
		Changes:      plugin.DiffSome,
		DetailedDiff: plugin.NewDetailedDiffFromObjectDiff(diff, true),
	}
	for path, change := range result.DetailedDiff {
		if path == "triggers" || strings.HasPrefix(path, "triggers[") {
			change.Kind = change.Kind.AsReplace()
			result.DetailedDiff[path] = change
		}
	}
	return result, nil
}

func (p *Provider) Create(
	ctx context.Context, req plugin.CreateRequest,
) (plugin.CreateResponse, error) {
	if req.Preview {
		return plugin.CreateResponse{Properties: previewState(req.Type, req.Properties)}, nil
	}
	suffix := make([]byte, 8)
	if _, err := rand.Read(suffix); err != nil {
		return plugin.CreateResponse{}, err
	}
	state, err := p.apply(ctx, operation{
		urn: req.URN, typ: req.Type, inputs: req.Properties,
		timeout: req.Timeout, verbs: []string{"create"},
	})
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	return plugin.CreateResponse{
		ID:         resource.ID(req.Name + "-" + hex.EncodeToString(suffix)),
		Properties: state,
	}, nil
}

func (p *Provider) Update(
	ctx context.Context, req plugin.UpdateRequest,
) (plugin.UpdateResponse, error) {
	if req.Preview {
		return plugin.UpdateResponse{Properties: previewState(req.Type, req.NewInputs)}, nil
	}
	if req.Type == copyToRemote && sameCopy(req.OldInputs, req.NewInputs) {
		return plugin.UpdateResponse{Properties: req.NewInputs.Copy()}, nil
	}
	state, err := p.apply(ctx, operation{
		urn: req.URN, typ: req.Type, inputs: req.NewInputs, previous: req.OldOutputs,
		timeout: req.Timeout, verbs: []string{"update", "create"},
	})
	return plugin.UpdateResponse{Properties: state}, err
}

func (p *Provider) Delete(
	ctx context.Context, req plugin.DeleteRequest,
) (plugin.DeleteResponse, error) {
	if req.Type == copyToRemote || !hasString(req.Outputs, "delete") {
		return plugin.DeleteResponse{}, nil
	}
	_, err := p.apply(ctx, operation{
		urn: req.URN, typ: req.Type, inputs: req.Outputs, previous: req.Outputs,
		timeout: req.Timeout, verbs: []string{"delete"},
	})
	return plugin.DeleteResponse{}, err
}

// Read returns what the engine already knows: a command has no remote state.
func (p *Provider) Read(
	_ context.Context, req plugin.ReadRequest,
) (plugin.ReadResponse, error) {
	return plugin.ReadResponse{
		ReadResult: plugin.ReadResult{ID: req.ID, Inputs: req.Inputs, Outputs: req.State},
	}, nil
}

func (p *Provider) Invoke(
	ctx context.Context, req plugin.InvokeRequest,
) (plugin.InvokeResponse, error) {
	if req.Tok != localRun {
		return plugin.InvokeResponse{}, fmt.Errorf("function %s is not supported", req.Tok)
	}
	args := req.Args.Copy()
	args["create"] = args["command"]
	state, err := p.apply(ctx, operation{typ: localCommand, inputs: args, verbs: []string{"create"}})
	if err != nil {
		return plugin.InvokeResponse{}, err
	}
	delete(state, "create")
	return plugin.InvokeResponse{Properties: state}, nil
}

// operation is one create, update or delete.
type operation struct {
	urn      resource.URN
	typ      tokens.Type
	inputs   resource.PropertyMap
	previous resource.PropertyMap // outputs of the last operation, if any
	timeout  float64              // seconds; 0 means none
	verbs    []string             // the first of these inputs that is set is the command to run
}

// apply performs op and returns the resource's new state.
func (p *Provider) apply(ctx context.Context, op operation) (resource.PropertyMap, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	if op.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(op.timeout*float64(time.Second)))
		defer cancel()
	}

	state := op.inputs.Copy()
	if op.typ == copyToRemote {
		return state, p.copy(ctx, op)
	}

	cmd, err := newCommand(op)
	if err != nil {
		return nil, err
	}
	output := result{
		stdout: stringOr(op.previous, "stdout", ""),
		stderr: stringOr(op.previous, "stderr", ""),
	}
	if cmd.script != "" {
		log := p.log.forCommand(op.urn, cmd.logging)
		if op.typ == remoteCommand {
			output, err = runRemote(ctx, cmd, log)
		} else {
			output, err = runLocal(ctx, cmd, log)
		}
		if err != nil {
			return nil, err
		}
	}
	state["stdout"] = maybeSecret(op.inputs, resource.NewProperty(output.stdout))
	state["stderr"] = maybeSecret(op.inputs, resource.NewProperty(output.stderr))
	return state, nil
}

func previewState(typ tokens.Type, inputs resource.PropertyMap) resource.PropertyMap {
	state := inputs.Copy()
	if typ != copyToRemote {
		unknown := resource.MakeComputed(resource.NewProperty(""))
		state["stdout"] = maybeSecret(inputs, unknown)
		state["stderr"] = maybeSecret(inputs, unknown)
	}
	return state
}

// maybeSecret marks an output secret if any input other than the connection is.
func maybeSecret(inputs resource.PropertyMap, v resource.PropertyValue) resource.PropertyValue {
	for key, input := range inputs {
		if key != "connection" && key != "stdout" && key != "stderr" && input.ContainsSecrets() {
			return resource.MakeSecret(v)
		}
	}
	return v
}
