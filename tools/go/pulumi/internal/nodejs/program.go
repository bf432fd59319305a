package nodejs

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/google/shlex"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// options are the `runtime.options` of Pulumi.yaml that this host honours.
type options struct {
	nodeArgs   []string
	typescript bool
	tsconfig   string
}

func parseOptions(info *pulumirpc.ProgramInfo) (options, error) {
	opts := options{typescript: true}
	for key, value := range info.GetOptions().AsMap() {
		var ok bool
		switch key {
		case "typescript":
			opts.typescript, ok = value.(bool)
		case "tsconfig":
			opts.tsconfig, ok = value.(string)
		case "nodeargs":
			var line string
			if line, ok = value.(string); ok {
				words, err := shlex.Split(line)
				if err != nil {
					return opts, fmt.Errorf("runtime option nodeargs: %w", err)
				}
				opts.nodeArgs = words
			}
		case "packagemanager":
			ok = value == "npm" || value == "auto"
		default:
			ok = true
		}
		if !ok {
			return opts, fmt.Errorf("runtime option %s: unsupported value %v", key, value)
		}
	}
	return opts, nil
}

// programArgs are the arguments of @pulumi/pulumi/cmd/run.
func programArgs(req *pulumirpc.RunRequest, engine string) []string {
	var args []string
	flag := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name, value)
		}
	}
	flag("monitor", req.GetMonitorAddress())
	flag("engine", engine)
	flag("organization", req.GetOrganization())
	flag("project", req.GetProject())
	flag("root-directory", req.GetInfo().GetRootDirectory())
	flag("stack", req.GetStack())
	flag("pwd", req.GetInfo().GetProgramDirectory())
	if req.GetDryRun() {
		args = append(args, "--dry-run")
	}
	flag("parallel", strconv.Itoa(int(req.GetParallel())))
	return append(append(args, req.GetInfo().GetEntryPoint()), req.GetArgs()...)
}

func programEnv(req *pulumirpc.RunRequest, opts options) ([]string, error) {
	settings := make(map[string]string, len(req.GetConfig()))
	for k, v := range req.GetConfig() {
		key, err := config.ParseKey(k)
		if err != nil {
			return nil, err
		}
		settings[key.Namespace()+":"+key.Name()] = v
	}
	settingsJSON, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	secretKeys := req.GetConfigSecretKeys()
	if secretKeys == nil {
		secretKeys = []string{}
	}
	secretKeysJSON, err := json.Marshal(secretKeys)
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(),
		"PULUMI_CONFIG="+string(settingsJSON),
		"PULUMI_CONFIG_SECRET_KEYS="+string(secretKeysJSON))
	if opts.typescript {
		env = append(env, "PULUMI_NODEJS_TYPESCRIPT=true")
	}
	if opts.tsconfig != "" {
		env = append(env, "PULUMI_NODEJS_TSCONFIG_PATH="+opts.tsconfig)
	}
	return env, nil
}
