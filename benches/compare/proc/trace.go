package proc

import (
	"bufio"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Calls are system calls counted by name; Total also holds those without a name of their own.
type Calls struct {
	Total  int64
	ByName map[string]int64
}

// parsePerf reads the output of perf stat -x, for the events of perfEvents.
func parsePerf(text string) (Calls, error) {
	c := Calls{ByName: map[string]int64{}}
	found := false
	for line := range strings.Lines(text) {
		columns := strings.Split(line, ",")
		if len(columns) < 3 {
			continue
		}
		event := columns[2]
		n, err := strconv.ParseInt(columns[0], 10, 64)
		if err != nil { // "<not supported>", "<not counted>"
			if event == allCalls {
				return c, fmt.Errorf("perf says %s for %s", columns[0], event)
			}
			continue
		}
		if event == allCalls {
			c.Total, found = n, true
		} else if name, ok := strings.CutPrefix(event, oneCall); ok && n > 0 {
			c.ByName[name] = n
		}
	}
	if !found {
		return c, fmt.Errorf("no %s in the output of perf: %q", allCalls, text)
	}
	return c, nil
}

// summaryLine is a line of the table that strace -c prints. Its column of errors is often empty.
var summaryLine = regexp.MustCompile(`^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+([a-z0-9_]+)\s*$`)

// parseStrace reads the table that strace -c prints.
func parseStrace(text string) (Calls, error) {
	c := Calls{ByName: map[string]int64{}}
	sum, total := int64(0), false
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		m := summaryLine.FindStringSubmatch(scan.Text())
		if m == nil {
			continue
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return c, err
		}
		if m[2] == "total" {
			c.Total, total = n, true
			continue
		}
		sum += n
		c.ByName[m[2]] += n
	}
	switch {
	case !total:
		return c, fmt.Errorf("no total in the output of strace: %q", text)
	case sum != c.Total:
		return c, fmt.Errorf("the rows of strace add up to %d, its total is %d", sum, c.Total)
	}
	return c, nil
}
