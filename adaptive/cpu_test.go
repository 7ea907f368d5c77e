package adaptive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A machine is a fake /proc and /sys, and a reader that looks at it. Its time goes on
// by what is read.
type machine struct {
	t       *testing.T
	root    string
	now     int64
	process time.Duration
	reader  *cpuReader
}

// newMachine lays out the files, which are given by their paths.
func newMachine(t *testing.T, cpus int, files map[string]string) *machine {
	m := &machine{t: t, root: t.TempDir(), now: t0}
	for name, text := range files {
		m.write(name, text)
	}
	m.reader = &cpuReader{
		root: m.root, numCPU: func() int { return cpus },
		process: func() (time.Duration, bool) { return m.process, m.process >= 0 },
	}
	t.Cleanup(m.reader.close)
	return m
}

func (m *machine) write(name, text string) {
	file := filepath.Join(m.root, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(file), 0o777))
	require.NoError(m.t, os.WriteFile(file, []byte(text+"\n"), 0o666))
}

// after lets a second pass and returns what is read then.
func (m *machine) after() (share float64, ok bool) {
	m.now += int64(time.Second)
	return m.reader.read(m.now)
}

// reads expects share to be read in a second, and not to be known if it is negative.
func (m *machine) reads(share float64, why string) {
	m.t.Helper()
	got, ok := m.after()
	assert.Equal(m.t, share >= 0, ok, "%s: known", why)
	if share >= 0 {
		assert.InDelta(m.t, share, got, 0.001, why)
	}
}

const unknown = -1

// The trees are what /proc and /sys look like in the places that the names tell.
// counter is the file that says what has been used, in units of unit.
func TestCPU_Trees(t *testing.T) {
	v1 := "12:cpuset:%[1]s\n4:cpu,cpuacct:%[1]s\n1:name=systemd:%[1]s"
	v1mounts := `30 22 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:28 %[1]s /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct
33 30 0:30 %[1]s /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset`
	v2mount := "29 23 0:26 %s /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate"
	busyHost := "cpu  1000 0 0 0 0 0 0 0 0 0"
	for name, c := range map[string]struct {
		cpus    int
		files   map[string]string
		counter string
		unit    time.Duration
		source  string
		cores   float64
	}{
		"v1, container with its own namespace": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": fmt.Sprintf(v1, "/"), "proc/self/mountinfo": fmt.Sprintf(v1mounts, "/"),
				"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
				"sys/fs/cgroup/cpuset/cpuset.cpus": "0-7",
			},
			counter: "sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", unit: 1, source: "cgroup v1 /", cores: 1.5,
		},
		"v1, container in the host's namespace": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": fmt.Sprintf(v1, "/docker/0a1b"), "proc/self/mountinfo": fmt.Sprintf(v1mounts, "/docker/0a1b"),
				"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "50000",
			},
			counter: "sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", unit: 1, source: "cgroup v1 /", cores: 4,
		},
		"v1, service on a host": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": fmt.Sprintf(v1, "/system.slice/a b.service"), "proc/self/mountinfo": fmt.Sprintf(v1mounts, "/"),
				"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":                          "-1",
				"sys/fs/cgroup/cpu,cpuacct/system.slice/a b.service/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu,cpuacct/system.slice/a b.service/cpu.cfs_period_us": "100000",
			},
			counter: "sys/fs/cgroup/cpu,cpuacct/system.slice/a b.service/cpuacct.usage", unit: 1, source: "cgroup v1 /system.slice/a b.service", cores: 0.5,
		},
		"v2, container with its own namespace": {
			cpus: 64,
			files: map[string]string{
				"proc/self/cgroup": "0::/", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"),
				"sys/fs/cgroup/cpu.max": "400000 100000", "sys/fs/cgroup/cpuset.cpus.effective": "0-63",
			},
			counter: "sys/fs/cgroup/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /", cores: 4,
		},
		// Readers that look at the root of the mount only find no quota here.
		"v2, nested: the quota is an ancestor's": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": "0::/kubepods.slice/pod1/app", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"),
				"sys/fs/cgroup/kubepods.slice/cpu.max":          "700000 100000",
				"sys/fs/cgroup/kubepods.slice/pod1/cpu.max":     "200000 100000",
				"sys/fs/cgroup/kubepods.slice/pod1/app/cpu.max": "max 100000",
			},
			counter: "sys/fs/cgroup/kubepods.slice/pod1/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /kubepods.slice/pod1", cores: 2,
		},
		"v2, nested: of equal quotas the outer one is shared by more": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": "0::/pod/app", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"),
				"sys/fs/cgroup/pod/cpu.max": "200000 100000", "sys/fs/cgroup/pod/app/cpu.max": "100000 50000",
			},
			counter: "sys/fs/cgroup/pod/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /pod", cores: 2,
		},
		"v2, moved out of what the namespace shows": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": "0::/../other", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"),
				"sys/fs/cgroup/cpu.max": "100000 100000",
			},
			counter: "sys/fs/cgroup/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /", cores: 1,
		},
		"v2, a mount point with a blank": {
			cpus: 8,
			files: map[string]string{
				"proc/self/cgroup": "0::/x", "proc/self/mountinfo": `29 23 0:26 / /my\040cgroups rw - cgroup2 cgroup2 rw`,
				"my cgroups/x/cpu.max": "100000 100000",
			},
			counter: "my cgroups/x/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /x", cores: 1,
		},
		// A cgroup2 is mounted, and cgroup.controllers exists, but cpu is with version 1.
		"hybrid": {
			cpus: 2,
			files: map[string]string{
				"proc/self/cgroup": "3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/",
				"proc/self/mountinfo": `31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:29 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
33 30 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`,
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
				"sys/fs/cgroup/cpuset/cpuset.effective_cpus": "0-1",
				"sys/fs/cgroup/unified/cgroup.controllers":   "", "sys/fs/cgroup/unified/cpu.max": "900000 100000",
			},
			counter: "sys/fs/cgroup/cpuacct/cpuacct.usage", unit: 1, source: "cgroup v1 /", cores: 0.5,
		},
		// /proc/stat counts all 64 CPUs: a share of it would be 16 times too low.
		"cpuset of 4 of 64": {
			cpus: 4,
			files: map[string]string{
				"proc/self/cgroup": "0::/app", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"), "proc/stat": busyHost,
				"sys/fs/cgroup/app/cpuset.cpus.effective": "0-1,32-33", "sys/devices/system/cpu/online": "0-63",
			},
			counter: "sys/fs/cgroup/app/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /app, cpuset", cores: 4,
		},
		"cpuset tighter than the quota": {
			cpus: 2,
			files: map[string]string{
				"proc/self/cgroup": "0::/", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/"),
				"sys/fs/cgroup/cpu.max": "400000 100000", "sys/fs/cgroup/cpuset.cpus.effective": "3,5",
			},
			counter: "sys/fs/cgroup/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /", cores: 2,
		},
		// LXCFS shows /proc/stat and the CPUs as if the container were a host: here, an
		// idle one. The group knows better.
		"LXCFS": {
			cpus: 2,
			files: map[string]string{
				"proc/self/cgroup": "0::/.lxc", "proc/self/mountinfo": fmt.Sprintf(v2mount, "/") + "\n90 20 0:60 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw",
				"sys/fs/cgroup/cpu.max": "200000 100000", "sys/devices/system/cpu/online": "0-1",
				"proc/stat": "cpu  0 0 0 1000 0 0 0 0 0 0",
			},
			counter: "sys/fs/cgroup/cpu.stat", unit: time.Microsecond, source: "cgroup v2 /", cores: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, c.cpus, c.files)
			var used time.Duration
			use := func(cores float64) {
				used += time.Duration(cores * float64(time.Second))
				text := fmt.Sprint(int64(used / c.unit))
				if strings.HasSuffix(c.counter, "cpu.stat") {
					text = fmt.Sprintf("usage_usec %s\nuser_usec 1\nsystem_usec 2\nnr_periods 0", text)
				}
				m.write(c.counter, text)
			}
			use(100) // by others, or before
			m.reads(unknown, "the first time")
			use(0)
			m.reads(0, "idle")
			use(c.cores / 10)
			m.reads(0.1, "a tenth")
			use(c.cores)
			m.reads(1, "all there is")
			use(c.cores * 3)
			m.reads(1, "a burst beyond the quota")
			require.NoError(t, m.reader.problem)
			assert.Equal(t, c.source, m.reader.source)
			assert.InDelta(t, c.cores, m.reader.cores, 1e-9)
			assert.True(t, m.reader.limited())
			assert.Zero(t, testing.AllocsPerRun(100, func() { m.now += int64(time.Millisecond); m.reader.read(m.now) }), "allocations")
		})
	}
}

func TestCPU_NoLimit(t *testing.T) {
	m := newMachine(t, 4, map[string]string{
		"proc/self/cgroup": "0::/user.slice", "proc/self/mountinfo": "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
		"sys/fs/cgroup/user.slice/cpu.max": "max 100000", "sys/devices/system/cpu/online": "0-3",
		"sys/fs/cgroup/user.slice/cpuset.cpus.effective": "0-3",
		"proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0",
	})
	m.reads(unknown, "the first time")
	m.process += 2 * time.Second
	m.write("proc/stat", "cpu  150 0 150 1300 0 0 0 0 0 0")
	m.reads(0.5, "the process has half of the four CPUs, the host was a quarter busy")
	m.write("proc/stat", "cpu  150 0 150 1300 100 0 0 300 0 0")
	m.reads(0.75, "waiting for a disk is idle, stolen is busy")
	m.write("proc/stat", "cpu  9")
	m.process += time.Second
	m.reads(0.25, "the process alone, if /proc/stat makes no sense")
	assert.Equal(t, "host", m.reader.source)
	assert.False(t, m.reader.limited())
}

// https://github.com/zeromicro/go-zero/issues/24 and /870: without a cgroup file the
// process ended, or nothing was ever shed. What there is should do.
func TestCPU_GoZero24_MissingFiles(t *testing.T) {
	m := newMachine(t, 2, nil)
	m.reads(unknown, "the first time")
	m.process += time.Second
	m.reads(0.5, "the process's own time is always there")
	require.NoError(t, m.reader.problem, "other systems have no /proc")

	m.process = -1
	m.reads(unknown, "nothing is known")

	m = newMachine(t, 2, map[string]string{"proc/self/cgroup": "0::/", "proc/self/mountinfo": "29 23 0:26 / /c rw - cgroup2 cgroup2 rw", "c/cpu.max": "100000 100000"})
	m.reads(unknown, "the first time")
	m.process += 500 * time.Millisecond
	m.reads(0.5, "without cpu.stat, the process's own time over the quota")
	assert.ErrorContains(t, m.reader.problem, "cpu.stat")
}

func TestCPU_Problems(t *testing.T) {
	v2 := map[string]string{"proc/self/cgroup": "0::/", "proc/self/mountinfo": "29 23 0:26 / /c rw - cgroup2 cgroup2 rw", "c/cpu.max": "100000 100000", "c/cpu.stat": "usage_usec 1"}
	for name, c := range map[string]struct{ file, text, problem string }{
		"cgroup file":    {"proc/self/cgroup", "what", `/proc/self/cgroup has the line "what`},
		"quota":          {"c/cpu.max", "many 100000", `quota "many"`},
		"zero quota":     {"c/cpu.max", "0 100000", `quota "0"`},
		"zero period":    {"c/cpu.max", "100000 0", `period "0"`},
		"no period":      {"c/cpu.max", "100000", `period ""`},
		"counter":        {"c/cpu.stat", "usage_usec", "holds no number"},
		"nothing at all": {"proc/self/mountinfo", "", "no cgroup with the cpu controller"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, 2, v2)
			m.write(c.file, c.text)
			m.after()
			assert.ErrorContains(t, m.reader.problem, c.problem)
		})
	}
}

// https://github.com/zeromicro/go-zero/issues/4265 and https://github.com/golang/go/issues/73193:
// a quota that was read once is wrong after an in-place resize of the pod.
func TestCPU_QuotaChanges(t *testing.T) {
	m := newMachine(t, 8, map[string]string{
		"proc/self/cgroup": "0::/", "proc/self/mountinfo": "29 23 0:26 / /c rw - cgroup2 cgroup2 rw",
		"c/cpu.max": "100000 100000", "c/cpu.stat": "usage_usec 0",
	})
	m.after()
	m.write("c/cpu.stat", "usage_usec 1000000")
	m.reads(1, "one core of one")
	m.write("c/cpu.max", "400000 100000")
	for range 5 {
		m.after()
	}
	m.write("c/cpu.stat", "usage_usec 2000000")
	m.reads(0.25, "one core of four")
	m.write("c/cpu.max", "max 100000")
	for range 5 {
		m.after()
	}
	assert.Equal(t, "process", m.reader.source, "there is no /proc/stat here")
	m.process += 4 * time.Second
	m.reads(0.5, "four of eight")
}

func TestCPU_ProcessMoves(t *testing.T) {
	m := newMachine(t, 8, map[string]string{
		"proc/self/cgroup": "0::/a", "proc/self/mountinfo": "29 23 0:26 / /c rw - cgroup2 cgroup2 rw",
		"c/a/cpu.max": "100000 100000", "c/a/cpu.stat": "usage_usec 0",
		"c/b/cpu.max": "200000 100000", "c/b/cpu.stat": "usage_usec 500",
	})
	m.after()
	m.write("proc/self/cgroup", "0::/b")
	for range 61 {
		m.after()
	}
	assert.Equal(t, "cgroup v2 /b", m.reader.source)
	m.write("c/b/cpu.stat", "usage_usec 1000500")
	m.reads(0.5, "one core of two")

	m.write("proc/self/cgroup", "0::/a")
	m.write("c/b/cpu.stat", "") // gone
	m.reads(unknown, "an error")
	m.reads(unknown, "what is found again is read for the first time")
	assert.Equal(t, "cgroup v2 /a", m.reader.source, "it looks at once")
}

// Kata containers, Windows and some task limits hide the quota.
func TestCPU_GivenQuota(t *testing.T) {
	m := newMachine(t, 8, map[string]string{"proc/stat": "cpu  100 0 0 0 0 0 0 0 0 0"})
	m.reader.fixed = 0.5
	m.after()
	m.process += 250 * time.Millisecond
	m.reads(0.5, "half of half a core, whatever the host does")
	assert.True(t, m.reader.limited())
}

// https://github.com/alibaba/sentinel-golang/issues/404 and /539: the share is one of
// all cores, so it is never above 1, and one busy core of eight is an eighth.
func TestCPU_Sentinel404_ShareOfAllCores(t *testing.T) {
	m := newMachine(t, 8, nil)
	m.after()
	m.process += time.Second
	m.reads(0.125, "one core of eight")
	m.process += 80 * time.Second
	m.reads(1, "never more than all")
}

// The machine that the tests run on, whatever it is.
func TestCPU_ThisProcess(t *testing.T) {
	r := newCPUReader(0)
	defer r.close()
	now := t0
	_, ok := r.read(now)
	assert.False(t, ok)
	share, ok := r.read(now + int64(time.Hour))
	t.Logf("%s: %v (%v)", r.describe(), share, r.problem)
	if ok {
		assert.GreaterOrEqual(t, share, 0.0)
		assert.LessOrEqual(t, share, 1.0)
	}
	assert.Positive(t, r.cores)
}

func TestCPU_CountCPUs(t *testing.T) {
	for list, want := range map[string]int{
		"0": 1, "0-3": 4, "0-1,4,6-7": 5, "0-63\n": 64, "": 0, "3-1": 0, "a": 0, "0-": 0, "-1": 0, "0,,1": 0,
	} {
		assert.Equal(t, want, countCPUs(list), list)
	}
}

func FuzzCPU_Garbage(f *testing.F) {
	f.Add("0::/a", "29 23 0:26 / /c rw - cgroup2 cgroup2 rw", "1 1", "usage_usec 5")
	f.Add("1:cpu:/", `29 23 0:26 / /c\04 rw - cgroup cgroup rw,cpu`, "max", "cpu 1 2 3 4 5 6 7 8")
	f.Fuzz(func(t *testing.T, own, mounts, quota, counter string) {
		if strings.Contains(own+mounts, "..") || strings.ContainsRune(own+mounts, 0) {
			t.Skip("needs paths within the tree of the fixture")
		}
		m := newMachine(t, 2, map[string]string{
			"proc/self/cgroup": own, "proc/self/mountinfo": mounts, "c/cpu.max": quota, "c/cpu.stat": counter, "proc/stat": counter,
		})
		for range 4 {
			if share, ok := m.after(); ok && !(share >= 0 && share <= 1) {
				t.Fatalf("share %v", share)
			}
		}
	})
}
