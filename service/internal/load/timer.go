package load

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timer sleeps on a kernel timer read through Go's network poller. Go's own timers wake up to 1 ms
// late in an idle program, because the poller rounds the wait up to whole milliseconds; a timerfd
// wakes the poller as an event. Its deadlines are absolute, so that a goroutine that is held up
// before it arms the timer does not oversleep.
type timer struct {
	fd   int
	file *os.File
	spec unix.ItimerSpec
	read [8]byte
	// wall and monotonic are readings of the two clocks at the same moment.
	wall      time.Time
	monotonic int64
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("kernel timer: %w", err)
	}
	t := &timer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	t.wall, t.monotonic, err = readClocks()
	if err != nil {
		t.file.Close()
		return nil, fmt.Errorf("kernel timer: %w", err)
	}
	return t, nil
}

// readClocks keeps the tightest of a few tries, so that being preempted in one does no harm.
func readClocks() (wall time.Time, monotonic int64, err error) {
	best := int64(1<<63 - 1)
	for range 16 {
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
			return wall, 0, err
		}
		now := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &after); err != nil {
			return wall, 0, err
		}
		if gap := after.Nano() - before.Nano(); gap < best {
			best, wall, monotonic = gap, now, before.Nano()+gap/2
		}
	}
	return wall, monotonic, nil
}

// sleepUntil returns at the given moment, counted from t.wall, or with an error after stop.
func (t *timer) sleepUntil(since time.Duration) error {
	t.spec.Value = unix.NsecToTimespec(t.monotonic + int64(since))
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &t.spec, nil); err != nil {
		return err
	}
	_, err := t.file.Read(t.read[:])
	return err
}

// stop ends a sleep, now and for ever; it may be called from another goroutine.
func (t *timer) stop() { t.file.SetReadDeadline(time.Unix(1, 0)) }

func (t *timer) close() { t.file.Close() }
