// The priority bus as one writes it in Go: a channel for each subscriber, a map of them under a
// read-write lock, and a loop in order of priority with a non-blocking send.
//
//	go_sorted  sorts the subscribers at every publish
//	go_cached  sorts them when somebody subscribes
//
// Arguments and modes are those of bench_bus --run: NAME MODE SUBSCRIBERS MILLISECONDS.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	capacity = 128
	burst    = 32
)

type payload struct {
	words [8]uint64
}

type subscriber struct {
	id            string
	priority      int
	frames        chan *payload
	sent, dropped uint64
}

type bus struct {
	lock        sync.RWMutex
	subscribers map[string]*subscriber
	ordered     []*subscriber
}

func (b *bus) inOrder() []*subscriber {
	all := make([]*subscriber, 0, len(b.subscribers))
	for _, s := range b.subscribers {
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].priority < all[j].priority })
	return all
}

func (b *bus) subscribe(id string, priority int) *subscriber {
	b.lock.Lock()
	defer b.lock.Unlock()
	s := &subscriber{id: id, priority: priority, frames: make(chan *payload, capacity)}
	b.subscribers[id] = s
	b.ordered = b.inOrder()
	return s
}

func (b *bus) publish(given payload, sorted bool) int {
	frame := &given
	b.lock.RLock()
	defer b.lock.RUnlock()
	all := b.ordered
	if sorted {
		all = b.inOrder()
	}
	sent := 0
	for _, s := range all {
		select {
		case s.frames <- frame:
			atomic.AddUint64(&s.sent, 1)
			sent++
		default:
			atomic.AddUint64(&s.dropped, 1)
		}
	}
	return sent
}

func drain(s *subscriber) uint64 {
	count := uint64(0)
	for {
		select {
		case <-s.frames:
			count++
		default:
			return count
		}
	}
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: bench_bus_go NAME MODE SUBSCRIBERS MILLISECONDS")
		os.Exit(2)
	}
	sorted, mode := os.Args[1] == "go_sorted", os.Args[2]
	count, _ := strconv.Atoi(os.Args[3])
	milliseconds, _ := strconv.Atoi(os.Args[4])
	b := &bus{subscribers: map[string]*subscriber{}}
	all := []*subscriber{}
	for i := 0; i < count; i++ {
		all = append(all, b.subscribe(strconv.Itoa(i), i%4))
	}
	var got uint64
	if mode == "full" {
		for n := 0; n < 2*capacity; n++ {
			b.publish(payload{}, sorted)
		}
	}
	if mode == "polled" {
		go func() {
			for {
				found := uint64(0)
				for _, s := range all {
					found += drain(s)
				}
				atomic.AddUint64(&got, found)
			}
		}()
	}
	if mode == "threads" {
		for _, s := range all {
			go func(s *subscriber) {
				for range s.frames {
					atomic.AddUint64(&got, 1)
				}
			}(s)
		}
	}
	sent, publishes, took, errors := uint64(0), 0, time.Duration(0), 0
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	for warm := 3; time.Now().Before(end) || publishes == 0 || warm > 0; {
		begin := time.Now()
		for n := 0; n < burst; n++ {
			sent += uint64(b.publish(payload{}, sorted))
		}
		took += time.Since(begin)
		publishes += burst
		if mode == "alone" {
			drained := uint64(0)
			for _, s := range all {
				drained += drain(s)
			}
			if drained != uint64(burst*count) {
				errors++
			}
		} else if mode != "full" {
			for atomic.LoadUint64(&got) < sent {
				runtime.Gosched()
			}
		}
		if warm > 0 {
			if warm--; warm == 0 {
				took, publishes = 0, 0
			}
		}
	}
	if mode == "full" && sent != 0 || mode != "full" && sent%uint64(count) != 0 {
		errors++
	}
	fmt.Printf("ns_per_publish=%g\nerrors=%d\n", float64(took.Nanoseconds())/float64(publishes), errors)
	if errors != 0 {
		os.Exit(1)
	}
}
