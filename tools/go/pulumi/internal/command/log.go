package command

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// engineLog sends messages to the engine, which shows them with the resource.
type engineLog struct{ client pulumirpc.EngineClient }

// newEngineLog connects to the engine; without an address messages are dropped.
func newEngineLog(address string) (*engineLog, error) {
	if address == "" {
		return &engineLog{}, nil
	}
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return nil, err
	}
	return &engineLog{client: pulumirpc.NewEngineClient(conn)}, nil
}

func (l *engineLog) send(urn resource.URN, ephemeral bool, message string) {
	if l.client == nil || message == "" {
		return
	}
	// Losing a line of progress must not fail the operation.
	_, _ = l.client.Log(context.Background(), &pulumirpc.LogRequest{
		Severity: pulumirpc.LogSeverity_INFO, Urn: string(urn), Message: message, Ephemeral: ephemeral,
	})
}

// commandLog shows the progress of one operation.
type commandLog struct {
	stdout, stderr func(line string) // nil: not shown
	status         func(message string)
}

func (l *engineLog) forCommand(urn resource.URN, logging string) commandLog {
	line := func(s string) { l.send(urn, false, s) }
	c := commandLog{status: func(s string) { l.send(urn, true, s) }}
	if logging == "stdout" || logging == "stdoutAndStderr" {
		c.stdout = line
	}
	if logging == "stderr" || logging == "stdoutAndStderr" {
		c.stderr = line
	}
	return c
}
