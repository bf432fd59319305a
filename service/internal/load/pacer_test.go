package load

import (
	"slices"
	"testing"
	"time"
)

func newTestPacer(t testing.TB, plan *Plan) *pacer {
	t.Helper()
	timer, err := newTimer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(timer.close)
	return newPacer(plan, timer)
}

func mustPlan(t testing.TB, arrival string, rate int, duration time.Duration, seed uint64) Plan {
	t.Helper()
	plan, err := NewPlan(arrival, rate, duration, seed)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestThePacerNeverReturnsBeforeARequestIsDue(t *testing.T) {
	plan := mustPlan(t, Uniform, 5000, 100*time.Millisecond, 0)
	pacer := newTestPacer(t, &plan)
	began := time.Now()
	for sent := uint64(0); ; sent++ {
		wait, stop := pacer.Pace(time.Since(began), sent)
		if stop {
			if sent != plan.Planned {
				t.Fatalf("stopped after %d requests, planned %d", sent, plan.Planned)
			}
			return
		}
		// The start that the pacer finds may be a little after the true one, never before it.
		if elapsed := time.Since(began); wait != 0 || elapsed < plan.Offset(sent) {
			t.Fatalf("request %d: returned at %s with wait %s, due at %s",
				sent, elapsed, wait, plan.Offset(sent))
		}
	}
}

func TestThePacerDoesNotAllocate(t *testing.T) {
	plan := mustPlan(t, Uniform, 20_000, 10*time.Second, 0)
	pacer := newTestPacer(t, &plan)
	began, sent := time.Now(), uint64(0)
	allocations := testing.AllocsPerRun(500, func() {
		pacer.Pace(time.Since(began), sent)
		sent++
	})
	if allocations != 0 {
		t.Fatalf("%v allocations a request, want 0", allocations)
	}
}

func TestStopEndsALongWait(t *testing.T) {
	plan := mustPlan(t, Uniform, 1, time.Hour, 0)
	pacer := newTestPacer(t, &plan)
	began := time.Now()
	ended := make(chan bool)
	go func() {
		_, stop := pacer.Pace(time.Since(began)-30*time.Minute, plan.Planned-1)
		ended <- stop
	}()
	pacer.stop()
	select {
	case stop := <-ended:
		if !stop {
			t.Fatal("the wait ended without ending the attack")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting after 10 s")
	}
}

func TestAFarOverdueAttackEndsInsteadOfOverrunning(t *testing.T) {
	plan := mustPlan(t, Uniform, 100, time.Second, 0)
	pacer := newTestPacer(t, &plan)
	if _, stop := pacer.Pace(time.Second, 50); stop {
		t.Error("stopped at the end of the duration, want a second's grace")
	}
	if _, stop := pacer.Pace(3*time.Second, 50); !stop {
		t.Error("still sending 2 s after the last request was due")
	}
}

func TestTheStartIsTheMomentVegetaCountsFrom(t *testing.T) {
	plan := mustPlan(t, Uniform, 1000, 50*time.Millisecond, 0)
	pacer := newTestPacer(t, &plan)
	began := time.Now()
	for sent := uint64(0); sent < plan.Planned; sent++ {
		pacer.Pace(time.Since(began), sent)
	}
	// The least of 50 looks: a microsecond leaves room for a slow machine, not for a wrong idea.
	if off := pacer.startNs() - began.UnixNano(); off < -1000 || off > 5000 {
		t.Fatalf("start is %d ns off", off)
	}
}

// BenchmarkPacerLag prints how late Pace returns, at 1000 requests a second.
func BenchmarkPacerLag(b *testing.B) {
	plan := mustPlan(b, Uniform, 1000, 3*time.Second, 0)
	for b.Loop() {
		pacer := newTestPacer(b, &plan)
		lags := make([]float64, 0, plan.Planned)
		began := time.Now()
		for sent := uint64(0); sent < plan.Planned; sent++ {
			pacer.Pace(time.Since(began), sent)
			lags = append(lags, float64(time.Since(began)-plan.Offset(sent)))
		}
		slices.Sort(lags)
		b.ReportMetric(lags[len(lags)/2], "p50-ns")
		b.ReportMetric(lags[len(lags)*99/100], "p99-ns")
	}
}
