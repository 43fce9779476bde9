package redteam

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// bystander is another client: it asks at fixed moments, over kept-alive connections of its own, and wants
// each one's right answer. What it waits counts from when a request was due, so a stall counts for all that it holds up.
type bystander struct {
	r      *rig
	nonces atomic.Int64
	right  atomic.Int64 // answers

	mu      sync.Mutex // guards samples
	samples []sample
}

// sample is one answer: when its request was due, and how long it took from then on.
type sample struct {
	Due  int64 // ns since 1970
	Took time.Duration
}

const (
	askEvery    = 4 * time.Millisecond // on each connection
	answerLimit = 5 * time.Second
)

// askAll asks on three connections until ctx ends.
func (b *bystander) askAll() {
	var asking sync.WaitGroup
	for i, connect := range []func() (asker, error){b.dialH1, b.dialH1, b.dialH2} {
		asking.Go(func() { b.ask(connect, time.Duration(i)*askEvery/3) })
	}
	<-b.r.ctx.Done()
	b.r.leave()
	asking.Wait()
}

// asker asks once, and returns the nonce that came back.
type asker func(nonce string) (back string, err error)

// ask asks on one connection after another, one as a rule.
func (b *bystander) ask(connect func() (asker, error), offset time.Duration) {
	var once asker
	due := time.Now().Add(offset)
	defer func() { // what was due and is not answered has taken so long already
		for ; time.Now().After(due); due = due.Add(askEvery) {
			b.note(due)
		}
	}()
	for ; ; due = due.Add(askEvery) {
		if d := time.Until(due); d > 0 && !b.r.pause(d) || b.r.ctx.Err() != nil {
			return
		}
		var err error
		if once == nil {
			if once, err = connect(); err != nil {
				once = nil
				b.r.faults.add("the bystander cannot connect: %v", err)
				continue
			}
		}
		nonce := strconv.FormatInt(b.nonces.Add(1), 10)
		back, err := once(nonce)
		if err == nil && back != nonce {
			err = fmt.Errorf("nonce %q instead of %q", back, nonce)
		}
		if err != nil {
			if b.r.ctx.Err() != nil {
				return
			}
			b.r.faults.add("the bystander: %v", err)
			once = nil
		}
		if err == nil {
			b.right.Add(1)
		}
		b.note(due)
	}
}

func (b *bystander) note(due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.samples = append(b.samples, sample{due.UnixNano(), time.Since(due)})
}

func (b *bystander) dialH1() (asker, error) {
	c, err := b.r.dial("http/1.1", 0)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(c)
	return func(nonce string) (string, error) {
		_ = c.SetReadDeadline(time.Now().Add(answerLimit))
		if _, err := io.WriteString(c, "GET /bystander/ HTTP/1.1\r\nHost: localhost\r\nX-Nonce: "+nonce+"\r\n\r\n"); err != nil {
			return "", err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode != 200 {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
		return resp.Header.Get("X-Nonce"), err
	}, nil
}

func (b *bystander) dialH2() (asker, error) {
	h, err := b.r.dialH2(h2options{})
	if err != nil {
		return nil, err
	}
	id := uint32(0)
	return func(nonce string) (string, error) {
		if id += 2; id == 2 {
			id = 1
		}
		if err := h.send(headers(nil, id, endStream, request("GET", "/bystander/", "x-nonce", nonce))); err != nil {
			return "", h.why("HTTP/2: %w", err)
		}
		s := h.awaitStream(id, answerLimit)
		if s == nil {
			return "", h.why("HTTP/2: no answer")
		}
		h.mu.Lock()
		delete(h.streams, id)
		h.mu.Unlock()
		if s.status != "200" || s.reset != nil {
			return "", fmt.Errorf("HTTP/2: status %q", s.status)
		}
		return s.nonce, nil
	}, nil
}

// latency is what requests waited that were due within a while.
type latency struct {
	n             int
	p50, p99, max time.Duration
}

func latencyOf(samples []sample, from, to time.Time) latency {
	var took []time.Duration
	for _, s := range samples {
		if s.Due >= from.UnixNano() && s.Due < to.UnixNano() {
			took = append(took, s.Took)
		}
	}
	n := len(took)
	if n == 0 {
		return latency{}
	}
	slices.Sort(took)
	return latency{n, took[n/2], took[n*99/100], took[n-1]}
}
