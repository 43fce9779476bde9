package labenv

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// describeFault makes a word of what the echo's GET /fault tells.
func describeFault(text string) string {
	var f map[string]any
	if json.Unmarshal([]byte(text), &f) != nil {
		return "no fault that one can read"
	}
	var said []string
	for key, v := range f {
		switch v := v.(type) {
		case string:
			if v != "" && v != "0s" && v != "follow" {
				said = append(said, key+" "+v)
			}
		case bool:
			if v {
				said = append(said, key)
			}
		case float64:
			if v != 0 && key != "error_status" {
				said = append(said, fmt.Sprintf("%s %v", key, v))
			}
		}
	}
	if len(said) == 0 {
		return "ok"
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// Page is a metrics page: values by series, as it is written there.
type Page map[string]float64

// ReadPage asks for a metrics page.
func ReadPage(ctx context.Context, url string) (Page, error) {
	status, text, err := Ask(ctx, http.MethodGet, url, "")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", url, status)
	}
	return parsePage(text), nil
}

func parsePage(text string) Page {
	p := Page{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
				p[line[:at]] = v
			}
		}
	}
	return p
}

// Sum adds all series of a family whose labels hold every one of want, such as `status="503"`.
func (p Page) Sum(family string, want ...string) (sum float64) {
	for series, v := range p {
		name, labels, _ := strings.Cut(series, "{")
		if name == family && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(labels, w) }) {
			sum += v
		}
	}
	return sum
}

// Circuit is the state of an upstream's circuit in the words of the specification; "unknown" where the page
// has none.
func (p Page) Circuit(upstream string) string {
	v, ok := p[`ferryman_circuit_state{upstream="`+upstream+`"}`]
	if !ok {
		return "unknown"
	}
	return []string{"closed", "open", "half_open"}[int(v)%3]
}
