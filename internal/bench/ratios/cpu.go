//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of /proc's times; Linux has it so on every machine that Go runs on.
const clockTick = 10 * time.Millisecond

// parties are the processes whose CPU time tells where a purchase's goes, by
// name: api, redis, kafka, generator. Those of other machines aren't there, and
// nobody but this process itself is where there is no /proc as Linux has it.
type parties map[string][]int

// partiesOf finds the processes that listen at these addresses, by name.
func partiesOf(addrs map[string][]string) parties {
	found := parties{"generator": {os.Getpid()}}
	owners := socketOwners()
	for name, list := range addrs {
		for _, addr := range list {
			if pid, ok := owners[listeningSocket(addr)]; ok {
				found[name] = append(found[name], pid)
			}
		}
	}
	return found
}

// listeningSocket is the inode of the socket that listens at a port of this
// machine, "" if there is none. A Java process listens in the table of IPv6.
func listeningSocket(addr string) (inode string) {
	_, text, err := net.SplitHostPort(addr)
	port, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil {
		return ""
	}
	const localAddress, state, listen, socket = 1, 3, "0A", 9
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, _ := os.ReadFile(table)
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) > socket && fields[state] == listen && strings.HasSuffix(fields[localAddress], fmt.Sprintf(":%04X", port)) {
				return fields[socket]
			}
		}
	}
	return ""
}

// socketOwners are the processes that this one may look into, by the inodes of their sockets.
func socketOwners() map[string]int {
	owners := map[string]int{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, _ := os.Readlink(link)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			owners[strings.TrimSuffix(inode, "]")], _ = strconv.Atoi(strings.Split(link, "/")[2])
		}
	}
	return owners
}

// burnt is CPU time until an instant: of each party, and of the whole machine.
type burnt struct {
	parties   map[string]time.Duration
	idle, all time.Duration // of all cores
}

func (p parties) burnt() burnt {
	b := burnt{parties: map[string]time.Duration{}}
	for name, pids := range p {
		for _, pid := range pids {
			if spent, ok := processTime(pid); ok {
				b.parties[name] += spent
			}
		}
	}
	b.idle, b.all = machineTime()
	return b
}

// processTime is what a process has used, children apart.
func processTime(pid int) (time.Duration, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	const user, system = 11, 12 // counted from behind the name, which may hold anything
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, false
	}
	return ticks(fields[user]) + ticks(fields[system]), true
}

// machineTime is what all cores together have idled, and all of their time; 0
// where that can't be read.
func machineTime() (idle, all time.Duration) {
	file, err := os.Open("/proc/stat")
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	line, _ := bufio.NewReader(file).ReadBytes('\n')
	const idling, waiting, guests = 3, 4, 8
	for i, field := range bytes.Fields(line)[1:] {
		if i == guests { // and what follows: is in the others already
			break
		}
		if i == idling || i == waiting {
			idle += ticks(field)
		}
		all += ticks(field)
	}
	return idle, all
}

func ticks(text []byte) time.Duration {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return time.Duration(n) * clockTick
}

// spent is where the CPU went during a load.
type spent struct {
	Each map[string]float64 // microseconds an answered purchase, by party; nil: unknown
	Idle float64            // share of all cores
}

// since is what was spent from an earlier instant on, over so many purchases.
func (b burnt) since(before burnt, purchases int) spent {
	s := spent{}
	if b.all <= before.all || purchases == 0 {
		return s
	}
	s.Each = map[string]float64{}
	for name := range b.parties {
		s.Each[name] = float64((b.parties[name] - before.parties[name]).Microseconds()) / float64(purchases)
	}
	s.Idle = float64(b.idle-before.idle) / float64(b.all-before.all)
	return s
}
