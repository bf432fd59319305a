// Command pause keeps the namespaces of a pod until it is told to end. As the pod's first process
// it also takes in the processes that others left behind.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	pause(signals)
}

// pause returns at the first signal that does not tell of a child's end.
func pause(signals <-chan os.Signal) {
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap collects every child that has ended; several may share one signal.
func reap() {
	for {
		child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || child <= 0 {
			return
		}
	}
}
