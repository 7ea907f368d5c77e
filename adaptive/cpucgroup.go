package adaptive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// cgroups is where Linux accounts for the CPU time of this process: its control
// groups, of version 1, where each controller has a tree of its own, or of version 2.
// A host may have both; then the version that has the cpu controller counts.
type cgroups struct {
	v2                bool
	cpu, acct, cpuset cgroup // zero where there is none
}

// A cgroup is a directory in a mounted tree: own below mount.
type cgroup struct{ mount, own string }

func (g cgroup) exists() bool { return g.mount != "" }

// up is the group that g is part of; ok is false at the top of what is mounted.
func (g cgroup) up() (parent cgroup, ok bool) {
	if g.own == "/" {
		return g, false
	}
	return cgroup{g.mount, path.Dir(g.own)}, true
}

// read returns what a file of the group says; missing files say "".
func (g cgroup) read(name string) (string, error) {
	data, err := os.ReadFile(path.Join(g.mount, g.own, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// findCgroups looks for them in /proc below root, which is "" but in tests. Without
// any, the cgroups are zero, and err says why.
func findCgroups(root string) (cgroups, error) {
	own, err := os.ReadFile(root + "/proc/self/cgroup")
	if err != nil {
		return cgroups{}, err
	}
	mounts, err := os.ReadFile(root + "/proc/self/mountinfo")
	if err != nil {
		return cgroups{}, err
	}
	paths := map[string]string{} // by controller; that of version 2 is ""
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // 4:cpu,cpuacct:/path
		if len(parts) != 3 {
			return cgroups{}, fmt.Errorf("/proc/self/cgroup has the line %q", line)
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	found := mounted(string(mounts), root, paths)
	switch {
	case found["cpu"].exists():
		g := cgroups{cpu: found["cpu"], acct: found["cpuacct"], cpuset: found["cpuset"]}
		return g, nil
	case found[""].exists():
		return cgroups{v2: true, cpu: found[""], acct: found[""], cpuset: found[""]}, nil
	}
	return cgroups{}, errors.New("no cgroup with the cpu controller is mounted")
}

// mounted finds the group at each path in what mountinfo lists, by controller.
func mounted(mountinfo, root string, paths map[string]string) map[string]cgroup {
	found := map[string]cgroup{}
	fits := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		// 31 30 0:28 /root /mount/point rw - cgroup source rw,cpu
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if !ok || len(where) < 5 || len(what) < 3 {
			continue
		}
		var controllers []string
		switch what[0] {
		case "cgroup":
			controllers = strings.Split(what[2], ",")
		case "cgroup2":
			controllers = []string{""}
		}
		for _, c := range controllers {
			own, ok := paths[c]
			if !ok || fits[c] {
				continue
			}
			below, inside := beneath(own, unescape(where[3]))
			if inside || !found[c].exists() {
				found[c], fits[c] = cgroup{root + unescape(where[4]), below}, inside
			}
		}
	}
	return found
}

// beneath is the path own as seen from a mount of the directory top. A process that
// was moved out of what is mounted sees its top and nothing else.
func beneath(own, top string) (below string, ok bool) {
	if strings.HasPrefix(own, "/..") {
		return "/", false
	}
	if top == "/" {
		return path.Clean(own), true
	}
	if rest, ok := strings.CutPrefix(own, top); ok && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest), true
	}
	return "/", false
}

// unescape undoes mountinfo's \040 for a blank.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quota is the tightest limit on CPU time of the process's group and of those it is
// part of, in cores, and the group that has it: of several with the same, the
// outermost, since that one shares it with the most. 0 is none.
func (g cgroups) quota() (cores float64, at cgroup, err error) {
	for here, more := g.cpu, g.cpu.exists(); more; here, more = here.up() {
		var c float64
		if g.v2 {
			c, err = quotaV2(here)
		} else {
			c, err = quotaV1(here)
		}
		if err != nil {
			return 0, cgroup{}, err
		}
		if c > 0 && (cores == 0 || c <= cores) {
			cores, at = c, here
		}
	}
	return cores, at, nil
}

// quotaV2 reads cpu.max: "max 100000" or "150000 100000".
func quotaV2(g cgroup) (float64, error) {
	text, err := g.read("cpu.max")
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(text, " ")
	if quota == "" || quota == "max" {
		return 0, nil
	}
	return cores(g, quota, period)
}

// quotaV1 reads cpu.cfs_quota_us, where -1 is none, and cpu.cfs_period_us.
func quotaV1(g cgroup) (float64, error) {
	quota, err := g.read("cpu.cfs_quota_us")
	if err != nil || quota == "" || quota[0] == '-' {
		return 0, err
	}
	period, err := g.read("cpu.cfs_period_us")
	if err != nil {
		return 0, err
	}
	return cores(g, quota, period)
}

func cores(g cgroup, quota, period string) (float64, error) {
	q, err1 := strconv.ParseUint(quota, 10, 63)
	p, err2 := strconv.ParseUint(period, 10, 63)
	if err1 != nil || err2 != nil || q == 0 || p == 0 {
		return 0, fmt.Errorf("%s has the quota %q of the period %q", path.Join(g.mount, g.own), quota, period)
	}
	return float64(q) / float64(p), nil
}

// cpus is how many CPUs the process's group may run on; 0 is not known.
func (g cgroups) cpus() (int, error) {
	name := "cpuset.effective_cpus"
	if g.v2 {
		name = "cpuset.cpus.effective"
	}
	for here, more := g.cpuset, g.cpuset.exists(); more; here, more = here.up() {
		text, err := here.read(name)
		if err == nil && text == "" && !g.v2 {
			text, err = here.read("cpuset.cpus")
		}
		if err != nil || text != "" {
			return countCPUs(text), err
		}
	}
	return 0, nil
}

// countCPUs counts a list such as "0-3,8"; 0 for what is no such list.
func countCPUs(list string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 20)
		b, err2 := strconv.ParseUint(last, 10, 20)
		if err1 != nil || err2 != nil || b < a {
			return 0
		}
		n += int(b-a) + 1
	}
	return n
}

// usage is the file in which CPU time of g, a group of the cpu controller, is
// accounted for.
func (c cgroups) usage(g cgroup) string {
	if c.v2 {
		return path.Join(g.mount, g.own, "cpu.stat")
	}
	return path.Join(c.acct.mount, g.own, "cpuacct.usage")
}
