package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A part is some time of a trial.
type part struct {
	name  string
	long  time.Duration
	burnt bool // somebody burns the cores
}

// newClient returns one that keeps a connection for each call that may be under way.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10_000}}
}

// capacity is how many answers a second a server gives that has just enough to do, alone
// or beside somebody who burns the cores.
func (t trial) capacity(ctx context.Context, rounds int, burnt bool) (float64, error) {
	if burnt {
		_, stop, err := spawn(ctx, "burn")
		if err != nil {
			return 0, err
		}
		defer stop()
	}
	url, stop, err := start(ctx, kinds[0], rounds)
	if err != nil {
		return 0, err
	}
	defer stop()
	client := newClient()
	defer client.CloseIdleConnections()
	begin := time.Now()
	var answers atomic.Int64
	var callers sync.WaitGroup
	for range 4 * cores() {
		callers.Go(func() {
			for time.Since(begin) < t.burst && ctx.Err() == nil {
				if call(ctx, client, url, time.Minute) == http.StatusOK {
					answers.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if answers.Load() == 0 {
		return 0, fmt.Errorf("%s gives no answer", url)
	}
	return float64(answers.Load()) / time.Since(begin).Seconds(), nil
}

// call asks for an answer and returns its status, or 0 if there is none in time.
func call(ctx context.Context, client *http.Client, url string, deadline time.Duration) (status int) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/work", nil)
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || ctx.Err() != nil {
		return 0
	}
	return resp.StatusCode
}

// against lets calls come at a server of one kind, whether or not others are answered,
// and returns how many of each part were answered in time.
func (t trial) against(ctx context.Context, k kind, rounds int, capacity float64) ([]int64, error) {
	url, stop, err := start(ctx, k, rounds)
	if err != nil {
		return nil, err
	}
	defer stop()
	client := newClient()
	defer client.CloseIdleConnections()
	parts := t.parts()
	good := make([]int64, len(parts)) // counted by calls
	var calls sync.WaitGroup
	cool := func() {}
	defer func() { cool() }()
	next, end := time.Now(), time.Now()
	for i, p := range parts {
		if i > 0 && p.burnt != parts[i-1].burnt {
			cool()
			cool = func() {}
			if p.burnt {
				if _, cool, err = spawn(ctx, "burn"); err != nil {
					return nil, err
				}
			}
		}
		end = end.Add(p.long)
		for ; next.Before(end); next = next.Add(time.Duration(float64(time.Second) / (capacity * load))) {
			select {
			case <-ctx.Done():
				calls.Wait()
				return nil, ctx.Err()
			case <-time.After(time.Until(next)):
			}
			calls.Go(func() {
				if call(ctx, client, url, t.deadline) == http.StatusOK {
					atomic.AddInt64(&good[i], 1)
				}
			})
		}
	}
	calls.Wait()
	return good, nil
}
