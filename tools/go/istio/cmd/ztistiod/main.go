// Command ztistiod runs Istio's own control plane and certificate authority without Kubernetes.
//
// pilot-discovery of this version asks a Kubernetes client which namespaces exist, even if it is
// told to use no Kubernetes, and panics because there is none. This program gives the server an
// empty in-memory client to ask, and otherwise starts it as pilot-discovery does. All of xDS,
// signing and authentication is Istio's own code. Settings other than the flags come from Istio's
// own environment variables.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"
	"unsafe"

	"istio.io/istio/pilot/pkg/bootstrap"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/kube/krt"
	"istio.io/istio/pkg/kube/multicluster"
	"istio.io/istio/pkg/log"
)

const shutdownGrace = time.Second

type options struct {
	mesh, cluster, domain            string
	secure, plain, debug, monitoring string
}

func main() {
	if err := run(readOptions()); err != nil {
		fmt.Fprintf(os.Stderr, "ztistiod: %v\n", err)
		os.Exit(1)
	}
}

func readOptions() options {
	var o options
	flag.StringVar(&o.mesh, "mesh", "", "mesh configuration `file`, whose configSources name fs://")
	flag.StringVar(&o.cluster, "cluster", "ztbench", "cluster `id` that proxies name")
	flag.StringVar(&o.domain, "domain", "cluster.local", "`suffix` of service names")
	flag.StringVar(&o.secure, "listen", "", "`address` of xDS and the CA, over TLS")
	flag.StringVar(&o.plain, "plain", "127.0.0.1:15010", "loopback `address` of xDS without TLS")
	flag.StringVar(&o.debug, "debug", "127.0.0.1:15080", "loopback `address` of /ready and /debug")
	flag.StringVar(&o.monitoring, "monitoring", "127.0.0.1:15014", "loopback `address` of metrics")
	flag.Parse()
	return o
}

func run(o options) error {
	if o.mesh == "" || o.secure == "" {
		return errors.New("-mesh and -listen: missing, values are required")
	}
	// Otherwise it reads /etc/resolv.conf, which a host need not have. No name is ever looked up:
	// all endpoints are addresses.
	model.NetworkGatewayTestDNSServers = []string{"127.0.0.1:53"}
	if err := log.Configure(log.DefaultOptions()); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	arguments := argumentsOf(o)
	if err := arguments.Complete(); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	stop := make(chan struct{})
	client := kube.NewFakeClient()
	var clusters *multicluster.Controller
	server, err := bootstrap.NewServer(arguments, func(s *bootstrap.Server) {
		clusters = multicluster.NewController(multicluster.ControllerOptions{
			Client:          client,
			ClusterID:       cluster.ID(o.cluster),
			SystemNamespace: arguments.Namespace,
			Debugger:        new(krt.DebugHandler),
		})
		field(reflect.ValueOf(s), "multiclusterController").Set(reflect.ValueOf(clusters))
	})
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	go client.RunAndWait(stop)
	if err := clusters.Run(stop); err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	if err := server.Start(stop); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	markReady(server)
	if err := notify("READY=1"); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	close(stop)
	server.WaitUntilCompletion()
	return nil
}

func argumentsOf(o options) *bootstrap.PilotArgs {
	return bootstrap.NewPilotArgs(func(p *bootstrap.PilotArgs) {
		p.MeshConfigFile = o.mesh
		p.RegistryOptions.Registries = nil
		p.RegistryOptions.KubeOptions.DomainSuffix = o.domain
		p.RegistryOptions.KubeOptions.ClusterID = cluster.ID(o.cluster)
		p.ServerOptions.SecureGRPCAddr = o.secure
		p.ServerOptions.GRPCAddr = o.plain
		p.ServerOptions.HTTPAddr = o.debug
		p.ServerOptions.MonitoringAddr = o.monitoring
		p.ServerOptions.TLSOptions.TLSMinVersion = bootstrap.TLSMinVersion1_2
		p.ShutdownDuration = shutdownGrace
	})
}

// field returns an unexported field so that it can be set: upstream has no other way in.
func field(pointer reflect.Value, name string) reflect.Value {
	f := pointer.Elem().FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// markReady lets /ready answer 200: it waits for webhooks, which only Kubernetes has.
func markReady(server *bootstrap.Server) {
	flags := field(reflect.ValueOf(server), "readinessFlags")
	for _, name := range []string{"sidecarInjectorReady", "configValidationReady"} {
		field(flags, name).Addr().MethodByName("Store").Call([]reflect.Value{reflect.ValueOf(true)})
	}
}

// notify tells the service manager, if one asked to be told.
func notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("readiness notice: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("readiness notice: %w", err)
	}
	return nil
}
