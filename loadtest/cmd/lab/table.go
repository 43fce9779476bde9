//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"text/tabwriter"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

var order = []verdict{fail, invalid, skipped, pass}

// table prints rows, failures first, and turns them into an exit status. As a smoke test what could not be
// measured is only said.
func (l *lab) table(rows []row, smoke bool) error {
	slices.SortStableFunc(rows, func(a, b row) int { return slices.Index(order, a.verdict) - slices.Index(order, b.verdict) })
	w := tabwriter.NewWriter(l.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nRESULT\tWHAT\tMEASURED\tBUDGET")
	count := map[verdict]int{}
	for _, r := range rows {
		count[r.verdict]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.verdict, r.what, r.measured, r.budget)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	l.say("\n%d passed, %d failed, %d invalid, %d skipped", count[pass], count[fail], count[invalid], count[skipped])
	switch {
	case count[fail] > 0:
		return status(1)
	case count[invalid] > 0 && !smoke:
		return status(exitInvalid)
	}
	return nil
}

// control is what the generator's GET /status tells.
type control struct {
	ElapsedS float64 `json:"elapsed_s"`
	Targets  []struct {
		Bad      int64    `json:"bad"`
		LastBadS *float64 `json:"last_bad_s"`
	} `json:"targets"`
}

func readControl(ctx context.Context, url string) (control, error) {
	var c control
	status, text, err := labenv.Ask(ctx, http.MethodGet, url+"/status", "")
	if err != nil {
		return c, err
	}
	if status != http.StatusOK {
		return c, fmt.Errorf("the generator answers %d", status)
	}
	return c, json.Unmarshal([]byte(text), &c)
}
