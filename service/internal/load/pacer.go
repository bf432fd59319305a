package load

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// spare is less than it takes to arm the timer and be woken: so long a wait is spun.
	spare = 2 * time.Microsecond
	// maxLead and leadWakes bound the lead: see leader.
	maxLead   = 50 * time.Microsecond
	leadWakes = 64
	// overrun is how long after the last planned request sending may go on. A generator that is
	// further behind has failed; the rest counts as unsent.
	overrun = time.Second
)

// pacer is vegeta's Pacer: it returns from Pace when the next request is due. It does not allocate.
//
// It also finds the beginning of the attack. Vegeta passes the time since then, read just before
// the call; subtracted from the time read here it gives a moment that is too late by the length of
// the call, some ten nanoseconds if nothing comes between. The earliest moment over all calls is
// kept, so startNs is never before the true beginning, and after it by well under a microsecond.
type pacer struct {
	plan    *Plan
	timer   *timer
	last    time.Duration
	start   time.Duration // of the attack, since timer.wall
	lead    leader
	stopped atomic.Bool
}

const neverBegan = time.Duration(math.MaxInt64)

func newPacer(plan *Plan, t *timer) *pacer {
	last := plan.Offset(plan.Planned-1) + overrun
	return &pacer{plan: plan, timer: t, last: last, start: neverBegan}
}

// Pace implements vegeta.Pacer. All waiting is done here, so the wait returned is always 0.
func (p *pacer) Pace(elapsed time.Duration, sent uint64) (time.Duration, bool) {
	if start := time.Since(p.timer.wall) - elapsed; start < p.start {
		p.start = start
	}
	if sent >= p.plan.Planned || elapsed > p.last || p.stopped.Load() {
		return 0, true
	}
	due := p.plan.Offset(sent)
	return 0, due > elapsed && !p.waitFor(p.start+due, p.start+elapsed)
}

// waitFor returns at due, counted from timer.wall as is now; false if it was stopped.
func (p *pacer) waitFor(due, now time.Duration) bool {
	wake := due - p.lead.lead
	if wake <= now+spare {
		wake = due
	}
	if wake > now+spare {
		if p.timer.sleepUntil(wake) != nil {
			return false
		}
		now = time.Since(p.timer.wall)
		p.lead.learn(now - wake)
	}
	for now < due {
		now = time.Since(p.timer.wall)
	}
	return true
}

// leader says how much earlier to arm the timer: by what a wake-up takes at the least, the smallest
// delay of the last few. Waking is then rarely early, and spinning till the due time is short.
type leader struct {
	lead, least time.Duration
	wakes       int
}

func (l *leader) learn(delay time.Duration) {
	if l.wakes == 0 || delay < l.least {
		l.least = delay
	}
	if l.wakes++; l.wakes == leadWakes {
		l.lead, l.wakes = max(0, min(l.least, maxLead)), 0
	}
}

// Rate implements vegeta.Pacer; vegeta only prints it.
func (p *pacer) Rate(time.Duration) float64 { return float64(p.plan.RateQPS) }

// stop makes Pace end the attack.
func (p *pacer) stop() {
	p.stopped.Store(true)
	p.timer.stop()
}

// startNs is the wall clock at offset 0, or 0 if vegeta never asked. Read it after the attack.
func (p *pacer) startNs() int64 {
	if p.start == neverBegan {
		return 0
	}
	return p.timer.wall.Add(p.start).UnixNano()
}
