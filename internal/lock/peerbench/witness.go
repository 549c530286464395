package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// witness is what the holders of a lock do while they hold it: they see whether
// anybody else holds it too. It lies in a file that all processes map into
// memory, and knows nothing of Redis.
type witness struct {
	memory []byte
	keys   []guarded
}

// guarded belongs to one key, and to a cache line of its own.
type guarded struct {
	holder   atomic.Uint64
	overlaps atomic.Uint64 // how often somebody held it already, or a fence was smaller than the one before
	fence    uint64        // of the last holder
	count    uint64        // of cycles, written by the holder without any other protection
	_        [4]uint64
}

func openWitness(path string, keys int) (*witness, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := keys * int(unsafe.Sizeof(guarded{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &witness{memory: memory, keys: unsafe.Slice((*guarded)(unsafe.Pointer(&memory[0])), keys)}, nil
}

func (w *witness) close() { _ = syscall.Munmap(w.memory) }

// hold is the whole critical section.
func (g *guarded) hold(who, fence uint64) {
	if !g.holder.CompareAndSwap(0, who) {
		g.overlaps.Add(1)
		return
	}
	if fence != 0 {
		if fence < g.fence { // a cohort shares one
			g.overlaps.Add(1)
		}
		g.fence = fence
	}
	g.count++
	g.holder.Store(0)
}

// verify says what the holders saw, cycles being what they made.
func (w *witness) verify(cycles uint64) error {
	var count, overlaps uint64
	for i := range w.keys {
		count += w.keys[i].count
		overlaps += w.keys[i].overlaps.Load()
	}
	if overlaps > 0 || count != cycles {
		return fmt.Errorf("NO MUTUAL EXCLUSION: %d overlaps, %d cycles counted, %d made", overlaps, count, cycles)
	}
	return nil
}
