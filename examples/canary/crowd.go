package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	callers = 8
	batch   = 200 // users who call between two looks at the verdict
)

// A crowd is the virtual users.
type crowd struct {
	client http.Client
	url    string
	home   []string // which version served each user last
}

func newCrowd(url string, users int) *crowd {
	return &crowd{
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}},
		url:    url, home: make([]string, users),
	}
}

func userID(i int) string { return fmt.Sprintf("user-%d", i) }

// A round is what came of one call of each user.
type round struct {
	calls  int
	served map[string]int    // users, by version
	moved  map[[2]string]int // users by the version that they had and the one that they have
}

// call lets every user call once, the first to the last. It takes at least as long as it
// is told, and asks after each batch whether to go on.
func (c *crowd) call(ctx context.Context, least time.Duration, goOn func() bool) (round, error) {
	r := round{served: map[string]int{}, moved: map[[2]string]int{}}
	begun := time.Now()
	for from := 0; from < len(c.home); from += batch {
		to := min(from+batch, len(c.home))
		if err := c.callSome(ctx, from, to, &r); err != nil {
			return r, err
		}
		if !goOn() {
			return r, nil
		}
		pause := time.Until(begun.Add(least * time.Duration(to) / time.Duration(len(c.home))))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
	return r, nil
}

// callSome lets some users call, several at a time.
func (c *crowd) callSome(ctx context.Context, from, to int, r *round) error {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		first error
		next  = make(chan int)
	)
	for range callers {
		all.Go(func() {
			for i := range next {
				version, err := c.callOnce(ctx, i)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				} else if err == nil {
					r.note(c.home[i], version)
					c.home[i] = version
				}
				mu.Unlock()
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return first
}

// callOnce is one request of a user. That the service has failed is no error.
func (c *crowd) callOnce(ctx context.Context, user int) (version string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set(userHeader, userID(user))
	resp, err := c.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	return resp.Header.Get("X-Version"), nil
}

func (r *round) note(old, now string) {
	r.calls++
	r.served[now]++
	if old != "" && old != now {
		r.moved[[2]string{old, now}]++
	}
}

// movers is how many users are not where they were.
func (r *round) movers() int {
	n := 0
	for _, k := range r.moved {
		n += k
	}
	return n
}
