// Keyed dispatch as one writes it in Go: a goroutine and a channel for each key (per_key), or as
// many goroutines as workers with the keys hashed over them (hashed), which ties keys together.
//
// usage: bench_dispatcher_go CONTENDER DISTRIBUTION KEYS EVENTS WORKERS PACE_NS BLOCK_MS
// Prints the same lines as bench_dispatcher --run.
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type message struct {
	key, id, due  uint64
	index, number uint32
	payload       [4]uint64
}

const outstandingMax = 32768

var (
	epoch            = time.Now()
	done, sum        atomic.Uint64
	errors           atomic.Uint64
	in, out          []uint32
	checked          uint64
	paceNs, blockMs  uint64
	latencies        []float64
	latenciesMutex   sync.Mutex
)

func nowNs() uint64 { return uint64(time.Since(epoch)) }

func keyOf(index uint64) uint64 {
	key := index + 0x9e3779b97f4a7c15
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9
	key = (key ^ (key >> 27)) * 0x94d049bb133111eb
	return key ^ (key >> 31)
}

func handle(m *message) {
	if m.id < checked {
		if out[m.index] != m.number {
			errors.Add(1)
		}
		out[m.index]++
	}
	sum.Add(m.payload[0])
	if paceNs != 0 {
		if m.index == 0 && blockMs != 0 {
			time.Sleep(time.Duration(blockMs) * time.Millisecond)
		} else if m.index != 0 {
			latency := float64(nowNs() - m.due)
			latenciesMutex.Lock()
			latencies = append(latencies, latency)
			latenciesMutex.Unlock()
		}
	}
	done.Add(1)
}

func drawKeys(distribution string, keys, events uint64) []uint32 {
	count := uint64(1)
	for count < events && count < 1<<21 {
		count *= 2
	}
	draw := make([]uint32, count)
	random := rand.New(rand.NewSource(42))
	switch distribution {
	case "once":
		for i := range draw {
			draw[i] = uint32(uint64(i) % keys)
		}
	case "zipf":
		theta, zeta := 0.99, 0.0
		for i := uint64(1); i <= keys; i++ {
			zeta += 1 / math.Pow(float64(i), theta)
		}
		two := 1 + 1/math.Pow(2, theta)
		alpha := 1 / (1 - theta)
		eta := (1 - math.Pow(2/float64(keys), 1-theta)) / (1 - two/zeta)
		for i := range draw {
			u := random.Float64()
			switch {
			case u*zeta < 1:
				draw[i] = 0
			case u*zeta < two:
				draw[i] = 1
			default:
				rank := float64(keys) * math.Pow(eta*u-eta+1, alpha)
				draw[i] = uint32(math.Min(float64(keys-1), rank))
			}
		}
	default:
		for i := range draw {
			draw[i] = uint32(random.Uint64() % keys)
		}
	}
	return draw
}

func cpuNs() uint64 {
	var usage syscall.Rusage
	syscall.Getrusage(0, &usage)
	return uint64(usage.Utime.Nano() + usage.Stime.Nano())
}

func await(count uint64) {
	for done.Load() < count {
		time.Sleep(50 * time.Microsecond)
	}
}

func main() {
	if len(os.Args) != 8 {
		fmt.Fprintln(os.Stderr, "usage: bench_dispatcher_go CONTENDER DISTRIBUTION KEYS EVENTS "+
			"WORKERS PACE_NS BLOCK_MS")
		os.Exit(2)
	}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(os.Args[i], 10, 64)
		return n
	}
	distribution, keys, events, workers := os.Args[2], number(3), number(4), number(5)
	paceNs, blockMs = number(6), number(7)
	once := distribution == "once"
	if !once && paceNs == 0 {
		checked = events / 10
		if checked > 50000 {
			checked = 50000
		}
	}
	in, out = make([]uint32, keys), make([]uint32, keys)
	draw := drawKeys(distribution, keys, events)

	var dispatch func(m message)
	lanes := map[uint64]chan message{}
	var running sync.WaitGroup
	laneOf := func(key uint64) chan message {
		lane := lanes[key]
		if lane == nil {
			lane = make(chan message, 16)
			lanes[key] = lane
			running.Add(1)
			go func() {
				for m := range lane {
					handle(&m)
				}
				running.Done()
			}()
		}
		return lane
	}
	if os.Args[1] == "go_per_key" {
		dispatch = func(m message) { laneOf(m.key) <- m }
		for index := uint64(0); !once && index < keys; index++ {
			laneOf(keyOf(index))
		}
	} else {
		hashed := make([]chan message, workers)
		for i := range hashed {
			lane := make(chan message, outstandingMax)
			hashed[i] = lane
			go func() {
				for m := range lane {
					handle(&m)
				}
			}()
		}
		dispatch = func(m message) { hashed[(keyOf(m.key)>>32)*workers>>32] <- m }
	}

	begin, cpu := nowNs(), cpuNs()
	expected := uint64(0)
	for i := uint64(0); i < events; i++ {
		if checked != 0 && i == checked {
			await(i)
			begin, cpu = nowNs(), cpuNs()
		}
		for i%256 == 0 && i-done.Load() > outstandingMax {
			time.Sleep(20 * time.Microsecond)
		}
		index := draw[i&uint64(len(draw)-1)]
		m := message{key: keyOf(uint64(index)), id: i, index: index}
		m.payload[0] = i
		if i < checked {
			m.number = in[index]
			in[index]++
		}
		if paceNs != 0 {
			m.due = begin + i*paceNs
			for now := nowNs(); now < m.due; now = nowNs() {
				if m.due-now > 200000 {
					time.Sleep(time.Duration(m.due - now - 100000))
				}
			}
		}
		expected += i
		dispatch(m)
	}
	if once && os.Args[1] == "go_per_key" {
		for key, lane := range lanes {
			close(lane)
			delete(lanes, key)
		}
		running.Wait()
	}
	await(events)
	took, cpuTook := nowNs()-begin, cpuNs()-cpu
	timed := float64(events - checked)
	if sum.Load() != expected {
		errors.Add(1)
	}
	fmt.Printf("ns_per_event=%g\ncpu_ns_per_event=%g\n", float64(took)/timed, float64(cpuTook)/timed)
	if len(latencies) > 0 {
		sort.Float64s(latencies)
		at := func(share float64) float64 {
			return latencies[int(share*float64(len(latencies)-1))] / 1000
		}
		fmt.Printf("p50_us=%g\np99_us=%g\np999_us=%g\n", at(0.5), at(0.99), at(0.999))
	}
	fmt.Printf("errors=%d\n", errors.Load())
	if errors.Load() != 0 {
		os.Exit(1)
	}
}
