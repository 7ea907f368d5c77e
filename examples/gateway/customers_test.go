package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// An ending is what became of a customer's request.
type ending int

const (
	served      ending = iota // 200, whole and right
	failed                    // 500
	unreachable               // 502
	refused                   // 503
	timedOut                  // 504
	brokenOff                 // no answer, or not all of it
	left                      // the customer did not wait for it
	wrong                     // anything else: nobody may get that
)

var endings = []string{"200", "500", "502", "503", "504", "broken off", "left", "wrong"}

// customers ask a gateway for what shaky backends have, without a pause, and some of
// them are no better than these.
type customers struct {
	gateway  string   // host:port
	prefixes []string // of services
	client   *http.Client
	asked    atomic.Int64
	ends     [wrong + 1]atomic.Int64 // written by run
	oddity   atomic.Pointer[string]  // one of the wrong ends, for the log
}

// unmet returns the endings that have not come, of those that must.
func (c *customers) unmet() []string {
	var names []string
	for e := served; e < wrong; e++ {
		if c.ends[e].Load() == 0 {
			names = append(names, endings[e])
		}
	}
	return names
}

// run lets so many customers ask at a time until ctx is done, and returns when all of
// them have got their answers.
func (c *customers) run(ctx context.Context, n int) {
	var crowd sync.WaitGroup
	defer crowd.Wait()
	for range n {
		crowd.Go(func() {
			for ctx.Err() == nil {
				end := c.ask()
				c.ends[end].Add(1)
				if end == refused {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// ask makes one request.
func (c *customers) ask() ending {
	id := strconv.FormatInt(c.asked.Add(1), 10)
	size := 1 + rand.N(16<<10)
	if rand.N(50) == 0 {
		size += 1 << 20 // more than buffers on the way hold
	}
	where := fmt.Sprintf("%s/%d/%s", c.prefixes[rand.N(len(c.prefixes))], size, id)
	ctx, leave := context.WithTimeout(context.Background(), time.Minute)
	defer leave()
	switch rand.N(100) {
	case 0:
		return c.hangUp(where)
	case 1:
		return c.get(ctx, where, size, id, io.MultiReader(bytes.NewReader(make([]byte, rand.N(64<<10))), brokenUpload{}))
	case 2, 3, 4:
		time.AfterFunc(rand.N(30*time.Millisecond), leave)
		return c.get(ctx, where, size, id, nil)
	case 5, 6, 7, 8, 9:
		return c.get(ctx, where, size, id, bytes.NewReader(make([]byte, rand.N(64<<10))))
	default:
		return c.get(ctx, where, size, id, nil)
	}
}

// hangUp resets the connection in the middle of the request, or right after it.
func (c *customers) hangUp(where string) ending {
	conn, err := net.Dial("tcp", c.gateway)
	if err != nil {
		return brokenOff
	}
	request := "GET " + where + " HTTP/1.1\r\nHost: gateway.test\r\n\r\n"
	io.WriteString(conn, request[:len(request)-rand.N(4)])
	time.Sleep(rand.N(5 * time.Millisecond))
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	return left
}

// get sends body, if any, and looks at what comes back.
func (c *customers) get(ctx context.Context, where string, size int, id string, body io.Reader) ending {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.gateway+where, body)
	if err != nil {
		return c.odd(err.Error())
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return cutShort(ctx, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return cutShort(ctx, err)
	case resp.StatusCode == http.StatusOK && bytes.Equal(got, filled(size, id)):
		return served
	case resp.StatusCode == http.StatusInternalServerError:
		return failed
	case resp.StatusCode == http.StatusBadGateway:
		return unreachable
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return refused
	case resp.StatusCode == http.StatusGatewayTimeout:
		return timedOut
	}
	return c.odd(fmt.Sprintf("%s for %s: %d bytes, %.80q", resp.Status, where, len(got), got))
}

// cutShort is the end of a request without a whole answer.
func cutShort(ctx context.Context, err error) ending {
	if ctx.Err() != nil || errors.Is(err, errUpload) {
		return left
	}
	return brokenOff
}

func (c *customers) odd(what string) ending {
	c.oddity.CompareAndSwap(nil, &what)
	return wrong
}

// A brokenUpload is the end of a body that its sender cannot finish.
type brokenUpload struct{}

var errUpload = errors.New("the customer lost the rest")

func (brokenUpload) Read([]byte) (int, error) { return 0, errUpload }
