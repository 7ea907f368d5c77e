package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sluicego/sluice/adaptive"
	"github.com/sluicego/sluice/httpguard"
)

// A kind is a server that is tried.
type kind struct {
	name  string
	about string
	rules []adaptive.SystemOption // nil: there is no System
}

var kinds = [...]kind{
	{"naive", "takes all calls", nil},
	// Who burns the cores has each for some milliseconds at a time, so the default of 5 ms
	// would let the System refuse calls that are not to blame. A bound on the calls under way
	// would be of no use: they wait for a core before anybody can count them.
	{"system", "an adaptive.System refuses so many that goroutines wait for 20 ms", []adaptive.SystemOption{
		adaptive.WithQueueDelay(20 * time.Millisecond),
	}},
}

// guard is what stands in front of the server of that kind; nil lets everything pass.
func guard(name string) (*adaptive.System, error) {
	for _, k := range kinds {
		if k.name == name {
			if k.rules == nil {
				return nil, nil
			}
			return adaptive.NewSystem("server", k.rules...)
		}
	}
	return nil, fmt.Errorf("%q is no kind of server", name)
}

// cores is how many the server uses: more would only need more calls.
func cores() int { return min(runtime.GOMAXPROCS(0), 4) }

// work keeps a core busy for so many rounds.
func work(rounds int) {
	var block [256]byte
	for range rounds {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
	}
}

// calibrate returns how many rounds take d on a core of its own.
func calibrate(d time.Duration) (rounds int) {
	const some = 2000
	best := time.Hour
	for range 20 {
		begin := time.Now()
		work(some)
		best = min(best, time.Since(begin))
	}
	return max(1, int(some*d/max(best, 1)))
}

// serve is the server's process: it writes its address to out, and ends when in does,
// which is when its parent ends, however that comes about.
func serve(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("serve wants a kind and rounds")
	}
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // whatever happens
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()

	system, err := guard(args[0])
	if err != nil {
		return err
	}
	go func() { _ = system.Run(ctx) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /work", func(w http.ResponseWriter, r *http.Request) {
		permit, err := system.Allow(r.Context())
		if err != nil {
			httpguard.Refuse(w, r, err)
			return
		}
		defer permit.Close()
		work(rounds)
		_, err = io.WriteString(w, "done\n")
		permit.Done(err)
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Fprintln(out, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// start starts a server's process, and returns its URL and what ends it.
func start(ctx context.Context, k kind, rounds int) (url string, stop func(), err error) {
	address, stop, err := spawn(ctx, "serve", k.name, strconv.Itoa(rounds))
	return "http://" + address, stop, err
}

// burn is the process that keeps all cores busy until in ends.
func burn(in io.Reader, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // whatever happens
	defer cancel()
	for range cores() {
		go func() {
			for ctx.Err() == nil {
				work(1000)
			}
		}()
	}
	fmt.Fprintln(out, "burning")
	_, _ = io.Copy(io.Discard, in)
}

// spawn starts this program once more, and returns the line that it says first, and what
// ends it.
func spawn(ctx context.Context, args ...string) (says string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close()
		_ = cmd.Wait()
	}
	says, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%s did not start: %w", args[0], err)
	}
	return strings.TrimSpace(says), stop, nil
}
