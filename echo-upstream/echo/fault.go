package echo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The values of Fault.Health.
const (
	HealthFollow = "follow"
	HealthOK     = "ok"
	HealthFail   = "fail"
)

// Limits of a fault: long enough for any lesson, short enough for a typing error to be noticed.
const (
	maxFaultDelay      = 10 * time.Minute
	defaultErrorStatus = 503
)

// Fault is how the server misbehaves. The zero value is no fault at all.
type Fault struct {
	// Latency is added before each answer, plus a share of Jitter that differs from one request
	// to the next. Zero: none.
	Latency Duration `json:"latency"`
	Jitter  Duration `json:"jitter"`

	// ErrorRate is the share of requests, 0 to 1, that get ErrorStatus (400 to 599; 0 means 503).
	// They are spread evenly: 0.25 is every fourth request, not one in four on average.
	ErrorRate   float64 `json:"error_rate"`
	ErrorStatus int     `json:"error_status"`

	// Hang takes requests and never answers them. The connection is closed when the fault changes.
	Hang bool `json:"hang"`
	// Reset answers a request with a TCP reset. It excludes Hang.
	Reset bool `json:"reset"`
	// SlowBody is how long a body takes once its head was sent. Zero: no delay.
	SlowBody Duration `json:"slow_body"`

	// Health says what /health does: "follow" (also "") is under the fault like any other path,
	// "ok" is always 200, "fail" is always 503.
	Health string `json:"health"`
}

// Duration is a time.Duration that JSON knows as text, such as "250ms".
type Duration time.Duration

// MarshalJSON writes the duration as Go prints it.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return fmt.Errorf("%s is not a duration: write it as text with a unit, such as \"250ms\"", b)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number and a unit, such as \"250ms\"", text)
	}
	*d = Duration(v)
	return nil
}

// ParseFault reads a fault from JSON. Keys that are absent mean no such fault; unknown keys, values
// out of range and contradictions are errors that say what would be right.
func ParseFault(body []byte) (Fault, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return Fault{}, errors.New(`the body is empty: send a JSON object such as {"latency":"3s"}; DELETE heals`)
	}
	f := Fault{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Fault{}, fmt.Errorf("not a fault: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Fault{}, errors.New("not a fault: something follows the JSON object")
	}
	if err := f.complete(); err != nil {
		return Fault{}, err
	}
	return f, nil
}

// complete fills in defaults and checks ranges.
func (f *Fault) complete() error {
	if f.ErrorStatus == 0 {
		f.ErrorStatus = defaultErrorStatus
	}
	if f.Health == "" {
		f.Health = HealthFollow
	}
	for _, d := range []struct {
		key   string
		value Duration
	}{{"latency", f.Latency}, {"jitter", f.Jitter}, {"slow_body", f.SlowBody}} {
		if d.value < 0 || time.Duration(d.value) > maxFaultDelay {
			return fmt.Errorf("%s is %v: it must be between 0s and %v", d.key, time.Duration(d.value), maxFaultDelay)
		}
	}
	switch {
	case !(f.ErrorRate >= 0 && f.ErrorRate <= 1):
		return fmt.Errorf("error_rate is %v: it must be between 0 and 1", f.ErrorRate)
	case f.ErrorStatus < 400 || f.ErrorStatus > 599:
		return fmt.Errorf("error_status is %d: it must be between 400 and 599", f.ErrorStatus)
	case f.Hang && f.Reset:
		return errors.New("hang and reset exclude each other: choose one")
	case f.Health != HealthFollow && f.Health != HealthOK && f.Health != HealthFail:
		return fmt.Errorf("health is %q: it must be follow, ok or fail", f.Health)
	}
	return nil
}

// Active reports whether the fault changes anything.
func (f Fault) Active() bool {
	return f.Latency > 0 || f.Jitter > 0 || f.ErrorRate > 0 || f.Hang || f.Reset || f.SlowBody > 0 ||
		(f.Health != HealthFollow && f.Health != "")
}
