//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestPartiesAreFoundByWhereTheyListen(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	found := partiesOf(map[string][]string{"api": {listener.Addr().String()}, "redis": {gone.Addr().String(), "nowhere"}})
	if got := found["generator"]; len(got) != 1 || got[0] != os.Getpid() {
		t.Errorf("the generator is %v", got)
	}
	if found["redis"] != nil {
		t.Errorf("nobody listens, and %v is found", found["redis"])
	}
	if runtime.GOOS != "linux" {
		return
	}
	if got := found["api"]; len(got) != 1 || got[0] != os.Getpid() {
		t.Errorf("found %v, want %d", got, os.Getpid())
	}
}

// A process that burns CPU is seen to do so, with a name that is hard to read.
func TestCPUTimeOfAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc as Linux has it")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	name := t.TempDir() + "/a ) S 1 ("
	if err := os.Symlink(shell, name); err != nil {
		t.Fatal(err)
	}
	busy := exec.Command(name, "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	p := parties{"api": {busy.Process.Pid, 1 << 30}}
	before := p.burnt()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(clockTick) {
		if s := p.burnt().since(before, 10); s.Each["api"] >= 10_000 { // 100 ms over 10 purchases
			if s.Idle < 0 || s.Idle > 1 || !strings.Contains(s.String(), "idle") {
				t.Errorf("idle is %v: %s", s.Idle, s)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no CPU time is seen")
		}
	}
	if s := p.burnt().since(before, 0); s.Each != nil || s.String() != "" {
		t.Errorf("without purchases: %v", s)
	}
}

func TestWhereTheCPUWentIsTheMedianOfTheRounds(t *testing.T) {
	r := &result{}
	for _, us := range []float64{30, 10, 20} {
		r.add("atomic", &shot{Accepted: 1, Elapsed: time.Second, Spent: spent{map[string]float64{"api": us}, us / 100}})
	}
	if got := r.Raw.Paths["atomic"].spent(); got.Each["api"] != 20 || got.Idle != .2 {
		t.Errorf("got %v", got)
	}
	if got := r.Raw.Paths["atomic"].spent().String(); got != " |  20.0     -     -     -, idle 20 %" {
		t.Errorf("line is %q", got)
	}
}
