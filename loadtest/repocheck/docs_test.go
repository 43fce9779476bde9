package repocheck

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unslug   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	external = regexp.MustCompile(`^[a-z]+:`)
)

func TestDocs_LinksResolve(t *testing.T) {
	for _, page := range files(t, func(name string) bool { return strings.HasSuffix(name, ".md") }) {
		text := code.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if why := broken(t, page, m[1]); why != "" {
				t.Errorf("%s: the link %s leads nowhere: %s", page, m[1], why)
			}
		}
	}
}

// broken says what is wrong with a link on a page; "" if nothing, or if it leads out of the repository.
func broken(t *testing.T, page, target string) string {
	t.Helper()
	if external.MatchString(target) {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return "no file " + name
	}
	line := regexp.MustCompile(`^L\d+(-L\d+)?$`)
	if anchor == "" || info.IsDir() || line.MatchString(anchor) {
		return ""
	}
	for _, h := range heading.FindAllStringSubmatch(read(t, name), -1) {
		if slug(h[1]) == anchor {
			return ""
		}
	}
	return "no heading " + anchor
}

// slug is the anchor of a heading, as code hosts make it.
func slug(text string) string {
	return strings.ReplaceAll(unslug.ReplaceAllString(strings.ToLower(strings.ReplaceAll(text, "`", "")), ""), " ", "-")
}

func TestBroken_SaysWhatIsMissing(t *testing.T) {
	require.Empty(t, broken(t, "README.md", "docs/architecture.md"))
	require.Empty(t, broken(t, "README.md", "https://example.com/nothing"))
	require.Equal(t, "no file docs/nothing.md", broken(t, "README.md", "docs/nothing.md"))
	require.Equal(t, "no heading nothing", broken(t, "README.md", "docs/architecture.md#nothing"))
	require.Equal(t, "what-it-is-not-http3", slug("What it is not: HTTP/3"))
}
