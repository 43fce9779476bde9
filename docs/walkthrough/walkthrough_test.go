// Package walkthrough_test holds the lessons' pages against their scripts. The scripts themselves run in
// `task verify`, where each compares what its commands print with the samples on its page.
package walkthrough_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sections = []string{"Question", "Predict", "Do", "Observe", "Explain", "Break it", "Verify", "Reset"}

var (
	heading = regexp.MustCompile(`(?m)^## (.+)$`)
	block   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)\n```$")
	link    = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	code    = regexp.MustCompile("`([A-Za-z]+)`")
	// A command in a script is in single quotes, so it cannot hold any.
	command = regexp.MustCompile(`(?m)^\s*(?:run|background|shown) '([^']*)'`)
)

// lesson is a page with its script.
type lesson struct{ name, page, script string }

func lessons(t *testing.T) []lesson {
	t.Helper()
	pages, err := filepath.Glob("[0-9][0-9]-*.md")
	require.NoError(t, err)
	var list []lesson
	for _, page := range pages {
		name := strings.TrimSuffix(page, ".md")
		list = append(list, lesson{name, read(t, page), read(t, name+".sh")})
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func TestWalkthrough_HasElevenLessonsEachInTheIndex(t *testing.T) {
	list := lessons(t)
	require.Len(t, list, 11)
	scripts, err := filepath.Glob("[0-9][0-9]-*.sh")
	require.NoError(t, err)
	require.Len(t, scripts, len(list), "a script without a page, or a page without a script")
	index := read(t, "README.md")
	for i, l := range list {
		number := fmt.Sprintf("%02d", i)
		require.True(t, strings.HasPrefix(l.name, number+"-"), l.name)
		title, _, _ := strings.Cut(l.page, "\n")
		require.True(t, strings.HasPrefix(title, "# "+number+" "), "%s: its title is %q", l.name, title)
		require.Contains(t, index, "| "+number+" | ["+strings.TrimPrefix(title, "# "+number+" ")+"]("+l.name+".md)")
		require.Contains(t, l.page, "\n```\ntask verify:"+number+"\n```\n")
	}
}

func TestPage_HasAllSectionsInOrderAndOneThingToDoFirst(t *testing.T) {
	for _, l := range lessons(t) {
		var got []string
		for _, m := range heading.FindAllStringSubmatch(l.page, -1) {
			got = append(got, m[1])
		}
		require.Equal(t, sections, got, l.name)
		_, after, _ := strings.Cut(l.page, "\n## Do\n")
		do, _, _ := strings.Cut(after, "\n## Observe\n")
		require.Len(t, commandsOf(do), 1, l.name)
	}
}

func TestPage_ItsCommandsAreThoseOfItsScriptInTheSameOrder(t *testing.T) {
	for _, l := range lessons(t) {
		var got []string
		for _, m := range command.FindAllStringSubmatch(l.script, -1) {
			got = append(got, m[1])
		}
		require.Equal(t, commandsOf(l.page), got, l.name)
	}
}

func commandsOf(page string) (list []string) {
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		if m[1] == "sh" {
			list = append(list, m[2])
		}
	}
	return list
}

func TestPage_ASampleFollowsItsCommandAndHasSomethingToCompare(t *testing.T) {
	for _, l := range lessons(t) {
		previous := ""
		for _, m := range block.FindAllStringSubmatch(l.page, -1) {
			if m[1] == "text" {
				require.Equal(t, "sh", previous, "%s: a sample without a command: %q", l.name, m[2])
				require.NotEmpty(t, strings.Trim(m[2], ".\n "), l.name)
			}
			previous = m[1]
		}
	}
}

// A link to a file of Go names what to look at there: that must still be in it.
func TestPage_LinksResolveAndNameWhatIsThere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			text, target := m[1], m[2]
			require.NotContains(t, target, "://", "%s: only files of this repository", page)
			content, err := os.ReadFile(filepath.FromSlash(target))
			require.NoError(t, err, "%s: [%s]", page, text)
			for _, name := range code.FindAllStringSubmatch(text, -1) {
				if strings.HasSuffix(target, ".go") {
					require.Regexp(t, `\b`+name[1]+`\b`, string(content), "%s: %s", page, target)
				}
			}
		}
	}
}

func TestScript_ParsesRunsNoCommandUnseenAndClaims(t *testing.T) {
	for _, l := range lessons(t) {
		out, err := exec.Command("bash", "-n", l.name+".sh").CombinedOutput()
		require.NoError(t, err, string(out))
		require.True(t, strings.HasPrefix(l.script, "#!/usr/bin/env bash\n# Lesson "+l.name[:2]+": "), l.name)
		require.Contains(t, l.script, "\nsource \"$(dirname \"$0\")/lib.sh\"\n", l.name)
		require.Contains(t, l.script, "\nclaim '", l.name)
		for line := range strings.Lines(command.ReplaceAllString(l.script, "")) {
			require.NotRegexp(t, `^\s*(run|background|shown) `, line, "%s: a command in other quotes is not seen by these tests", l.name)
			require.NotRegexp(t, `\bsleep\b`, line, "%s: poll with eventually", l.name)
		}
	}
}

func TestSame_MasksNumbersAndNothingElse(t *testing.T) {
	for _, tc := range []struct {
		name, sample, output string
		want                 bool
	}{
		{"equal", "a\nb", "a\nb", true},
		{"other numbers and units", "p50 87us, p99 1.04s, ok 1,393", "p50 1.20ms, p99 999us, ok 7", true},
		{"other widths of columns", "/svc-a  9111  ok", "/svc-a    127   ok", true},
		{"other addresses", "upstream 127.0.0.1:9111 is", "upstream echo-a:8000 is", true},
		{"another time", "time=2026-11-29T22:18:05.361Z level=INFO", "time=2027-01-02T03:04:05+01:00 level=INFO", true},
		{"another date", "Date: Sun, 29 Nov 2026 22:15:28 GMT", "Date: Mon, 04 Jan 2027 01:02:03 GMT", true},
		{"another folder", "config /a/b/.lab/config/ferryman.toml", "config /c/.lab/config/ferryman.toml", true},
		{"in a container", `error="/a/.lab/config/ferryman.toml:17: x"`, "\x1b[36mferryman_1  |\x1b[0m " + `error="/etc/ferryman/ferryman.toml:3: x"`, true},
		{"a dead container", "/svc-a  127.0.0.1:9111  killed  open", "/svc-a  echo-a:8000  no answer  open", true},
		{"an ending of lines", "HTTP/1.1 200 OK\n\nbody", "HTTP/1.1 200 OK\r\n\r\nbody", true},
		{"dots for lines", "a\n...\nd", "a\nb\nc\nd", true},
		{"dots for no line", "a\n...\nd", "a\nd", true},
		{"dots twice", "...\nx\n...", "a\nx\ny\nx\nb", true},
		{"another word", "ok 3", "bad 3", false},
		{"a word more", "ok 3", "ok 3, timeout 4", false},
		{"a line more", "a", "a\nb", false},
		{"a line less", "a\nb", "a", false},
		{"the line after the dots is missing", "a\n...\nd", "a\nb\nc", false},
		{"another order", "a\n...\nb\n...\nc", "b\na\nc", false},
		{"nothing", "a", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, alike(t, tc.sample, tc.output))
		})
	}
}

// alike asks lib.sh.
func alike(t *testing.T, sample, output string) bool {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"sample": sample, "output": output} {
		if text != "" {
			text += "\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return lib(t, dir, `if same "$1/sample" "$1/output"; then echo alike; fi`) == "alike"
}

// lib runs a line of bash with lib.sh's functions, without a lab.
func lib(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", `source ./lib.sh; `+line+` | grep -v "^#" || true; rm -rf "$WORK"`, "test", dir)
	cmd.Env = append(os.Environ(), "LIB_ONLY=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func TestLibrary_ReadsReportsAndMetrics(t *testing.T) {
	const report = `OUT="  Target http://x/svc-a/echo
    ok 1,199, refused 5,598, status 3
    response p50 147us, p99 19.95ms, max 45.85ms
    bad 1,003, due from 1.990 s to 2.010 s
  Target http://x/svc-b/echo
    ok 800
    response p50 241us, p99 23.61ms, max 52.83ms
Requests/sec:     300.00"; `
	const page = `printf '%s\n' 'm_total{a="1",b="x"} 3' 'm_total{a="2",b="x"} 4e+02' 'm_total_other{a="1"} 7' 'plain 0.5' | `
	for _, tc := range []struct{ line, want string }{
		{report + `class svc-a ok`, "1199"}, {report + `class svc-a refused`, "5598"}, {report + `class svc-a status`, "3"},
		{report + `class svc-b ok`, "800"}, {report + `class svc-b status`, "0"},
		{report + `bad svc-a`, "1003"}, {report + `bad_span svc-a`, "0.020"}, {report + `bad svc-b`, "0"},
		{page + `series m_total`, "403"}, {page + `series m_total 'a="1"' 'b="x"'`, "3"}, {page + `series m_total 'a="3"'`, "0"},
		{page + `series plain`, "0.5"},
		{`LAB_PROXY=http://127.0.0.1:1 LAB_UPSTREAM_A=echo-a:8000; localized 'curl http://127.0.0.1:8080/x 127.0.0.1:9111'`,
			"curl http://127.0.0.1:1/x echo-a:8000"},
		{`LAB=/bin/echo; task errors UPSTREAM=a STATUS=500 HEALTH=ok`, "errors a"},
		{`LAB=printenv; task STATUS STATUS=500`, "500"},
	} {
		require.Equal(t, tc.want, lib(t, "", tc.line), tc.line)
	}
}
