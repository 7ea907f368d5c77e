package adaptive

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A cpuReader tells which share of the CPU time that this process may have is in use.
//
// In a container it is that of the group whose quota is the tightest, over what that
// quota allows: siblings share a quota, and the process must not take it for idle
// while they use it up. With a set of CPUs and no quota it is that of the process's
// group, over the set. In neither, it is that of the host or of the process, whichever
// is more. /proc/stat is looked at in that last case only: in containers it tells of
// the host, or, where LXCFS stands in its place, of something in between.
//
// It looks again what there is: at quotas, which may be changed while the process
// runs, every 5 s, and where the process's groups are, every minute and after an
// error. Files stay open, and reading them allocates nothing. It belongs to one
// goroutine and must be closed.
type cpuReader struct {
	root    string // where /proc and /sys are looked for: "" but in tests
	numCPU  func() int
	process func() (time.Duration, bool) // the CPU time that it has taken
	fixed   float64                      // cores, as given by the user; 0 is none

	groups cgroups
	// The last error, nil while all is as it should be.
	problem             error
	relocateAt, limitAt int64

	cores  float64  // that the process may have
	source string   // what is looked at, for people
	usage  *os.File // of the group that is limited; nil if none is
	host   *os.File // /proc/stat; nil if a group is limited, or there is none

	last cpuTimes
	buf  [1024]byte
}

const (
	limitEvery  = 5 * time.Second
	locateEvery = time.Minute
)

// cpuTimes are what has been counted up to at; what is not known is negative.
type cpuTimes struct {
	at                  int64
	group, process      time.Duration
	hostIdle, hostTotal int64 // in ticks
}

// newCPUReader returns a reader for this process, which has so many cores; 0 leaves it
// to the reader to find that out.
func newCPUReader(cores float64) *cpuReader {
	return &cpuReader{numCPU: usableCPUs, process: processTime, fixed: cores}
}

// usableCPUs is how many CPUs the process can keep busy with Go code.
func usableCPUs() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// close closes the files.
func (r *cpuReader) close() {
	for _, f := range []*os.File{r.usage, r.host} {
		if f != nil {
			_ = f.Close() // opened for reading
		}
	}
	r.usage, r.host = nil, nil
}

// limited reports whether the process has less than the host.
func (r *cpuReader) limited() bool { return r.usage != nil || r.fixed > 0 }

// read returns the share in use since the last read, in [0, 1]; ok is false if that is
// not known, as it is the first time.
func (r *cpuReader) read(now int64) (share float64, ok bool) {
	if now >= r.limitAt {
		r.look(now)
	}
	before := r.last
	r.last = r.times(now)
	if r.usage != nil && r.last.group < 0 {
		r.source, r.relocateAt, r.limitAt = "", now, now // look for it anew next time
	}
	if before.at == 0 || now <= before.at {
		return 0, false
	}
	available := float64(now-before.at) * r.cores
	if r.usage != nil {
		return used(before.group, r.last.group, available)
	}
	share, ok = used(before.process, r.last.process, available)
	if r.host == nil || before.hostTotal < 0 || r.last.hostTotal <= before.hostTotal {
		return share, ok
	}
	idle := float64(max(r.last.hostIdle-before.hostIdle, 0)) / float64(r.last.hostTotal-before.hostTotal)
	return max(share, 1-min(idle, 1)), true
}

// used is the share of what was available that was used between two readings.
func used(before, after time.Duration, available float64) (share float64, ok bool) {
	if before < 0 || after < before {
		return 0, false
	}
	return min(float64(after-before)/available, 1), true
}

// look finds out what the process may have, and what tells how much is used of it.
func (r *cpuReader) look(now int64) {
	r.problem = nil
	if now >= r.relocateAt {
		r.relocateAt = clock.After(now, locateEvery)
		g, err := findCgroups(r.root)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.problem = err
		}
		r.groups = g
	}
	r.limitAt = clock.After(now, limitEvery)
	source, usage := r.limits()
	if source != r.source {
		r.close()
		r.source, r.last = source, cpuTimes{}
		r.open(usage)
	} else if r.usage == nil && usage != "" {
		r.open(usage)
	}
}

// limits works out r.cores, and returns what is to be looked at: in words, and the
// file in which a limited group's use is found, "" if none is limited.
func (r *cpuReader) limits() (source, usage string) {
	quota, at, err := r.groups.quota()
	set, err2 := r.groups.cpus()
	if err := errors.Join(err, err2); err != nil {
		r.problem = err
	}
	r.cores = float64(r.numCPU())
	if set > 0 {
		r.cores = min(r.cores, float64(set))
	}
	version := "v1"
	if r.groups.v2 {
		version = "v2"
	}
	online, _ := os.ReadFile(r.root + "/sys/devices/system/cpu/online")
	switch {
	case quota > 0:
		r.cores = min(r.cores, quota)
		source, usage = fmt.Sprintf("cgroup %s %s", version, at.own), r.groups.usage(at)
	case set > 0 && set < countCPUs(string(online)):
		source, usage = fmt.Sprintf("cgroup %s %s, cpuset", version, r.groups.cpu.own), r.groups.usage(r.groups.cpu)
	case r.fixed > 0:
		source = "process"
	default:
		source = "host"
	}
	if r.fixed > 0 {
		r.cores = r.fixed
	}
	return source, usage
}

// open opens what limits said: the file usage, or that of the host.
func (r *cpuReader) open(usage string) {
	var err error
	switch {
	case usage != "":
		r.usage, err = os.Open(usage)
	case r.fixed == 0:
		if r.host, err = os.Open(r.root + "/proc/stat"); errors.Is(err, os.ErrNotExist) {
			r.source, err = "process", nil
		}
	}
	if err != nil {
		r.problem = err
	}
}

// times reads all that is looked at.
func (r *cpuReader) times(now int64) cpuTimes {
	t := cpuTimes{at: now, group: -1, process: -1, hostIdle: -1, hostTotal: -1}
	if r.usage != nil {
		t.group = r.groupTime()
		return t
	}
	if taken, ok := r.process(); ok {
		t.process = taken
	}
	if r.host != nil {
		t.hostIdle, t.hostTotal = r.hostTimes()
	}
	return t
}

// groupTime is the CPU time that the group has used, -1 if it cannot be read.
func (r *cpuReader) groupTime() time.Duration {
	text, err := r.content(r.usage)
	unit := time.Nanosecond // cpuacct.usage is one number
	if rest, ok := bytes.CutPrefix(text, []byte("usage_usec ")); ok {
		text, unit = rest, time.Microsecond
	}
	n, _, ok := number(text)
	if err == nil && !ok {
		err = fmt.Errorf("%s holds no number", r.usage.Name())
	}
	if err != nil {
		r.problem = err
		return -1
	}
	return time.Duration(n) * unit
}

// hostTimes are the ticks that the host's CPUs were idle or waited for a disk, and
// those of all. Time that a hypervisor stole counts as busy: it is not to be had.
func (r *cpuReader) hostTimes() (idle, total int64) {
	text, err := r.content(r.host)
	text, ok := bytes.CutPrefix(text, []byte("cpu "))
	for i := 0; ok && i < 8; i++ { // user nice system idle iowait irq softirq steal
		var n int64
		if n, text, ok = number(text); i == 3 || i == 4 {
			idle += n
		}
		total += n
	}
	if !ok || err != nil {
		return -1, -1
	}
	return idle, total
}

// content reads the beginning of f, anew each time.
func (r *cpuReader) content(f *os.File) ([]byte, error) {
	n, err := f.ReadAt(r.buf[:], 0)
	if n > 0 {
		err = nil // io.EOF is what is expected
	}
	return r.buf[:n], err
}

// number reads a number off the front of text.
func number(text []byte) (n int64, rest []byte, ok bool) {
	for len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	for len(text) > 0 && text[0] >= '0' && text[0] <= '9' && n < math.MaxInt64/10-9 {
		n, text, ok = n*10+int64(text[0]-'0'), text[1:], true
	}
	return n, text, ok
}

// describe tells of the reader for people.
func (r *cpuReader) describe() string {
	return r.source + ", " + strconv.FormatFloat(r.cores, 'g', 4, 64) + " cores"
}
