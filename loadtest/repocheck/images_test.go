package repocheck

import (
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What the classic builder does not know, or a scratch image cannot do.
var dockerfileTrouble = []struct{ pattern, why string }{
	{`(?mi)^\s*RUN\s+--`, "RUN with an option needs BuildKit"},
	{`<<-?["']?\w`, "a heredoc needs BuildKit"},
	{`(?mi)^#\s*syntax\s*=`, "a syntax line pulls an image"},
	{`BUILDPLATFORM|TARGETARCH|--platform`, "platforms need BuildKit"},
	{`(?mi)^COPY\s+--(link|chmod|parents)`, "this option of COPY needs BuildKit"},
	{`:latest\b`, "a version, never latest"},
	{`(?m)^(ENTRYPOINT|CMD) [^\[]`, "scratch has no shell: use the exec form"},
}

func trouble(dockerfile string) (found []string) {
	for _, x := range dockerfileTrouble {
		if regexp.MustCompile(x.pattern).MatchString(dockerfile) {
			found = append(found, x.why)
		}
	}
	return found
}

func TestDockerfiles_SuitTheClassicBuilder(t *testing.T) {
	list := files(t, func(name string) bool { return strings.HasPrefix(path.Base(name), "Dockerfile") })
	require.GreaterOrEqual(t, len(list), 3)
	for _, name := range list {
		text := read(t, name)
		require.Empty(t, trouble(text), name)
		require.Contains(t, text, "ARG GO_IMAGE=golang:", name)
		_, last, ok := strings.Cut(text, "\nFROM scratch\n")
		require.True(t, ok, "%s: the final stage is scratch", name)
		require.Contains(t, last, "USER 65532:65532\n", name)
		require.Regexp(t, `(?m)^HEALTHCHECK .* CMD \["/[a-z-]+", "healthcheck"`, last, name)
		require.Regexp(t, `(?m)^ENTRYPOINT \["/[a-z-]+"\]$`, last, name)
	}
}

func TestDockerfiles_EachTroubleIsFound(t *testing.T) {
	require.Len(t, trouble("# syntax=docker/dockerfile:1\nFROM --platform=$BUILDPLATFORM golang:latest\nRUN --mount=type=cache go build\n"+
		"COPY --link a b\nRUN <<EOF\nEOF\nENTRYPOINT /x\n"), len(dockerfileTrouble))
}

// service is what is checked of a service.
type service struct {
	Image         string
	ContainerName string `yaml:"container_name"`
	Restart       string
	Ports         []string
	Labels        map[string]string
	MemLimit      string  `yaml:"mem_limit"`
	CPUs          float64 `yaml:"cpus"`
	Logging       struct{ Options map[string]string }
	Volumes       []string
}

func TestCompose_FilesKeepTheLabsRules(t *testing.T) {
	for _, name := range []string{"core", "observability", "bench"} {
		file := "compose/" + name + ".yml"
		top := map[string]yaml.Node{}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &top))
		for key := range top {
			require.Regexp(t, `^(services|networks|volumes|x-.*)$`, key, "%s: docker-compose 1.29.2 must know it", file)
		}
		services := map[string]service{}
		node := top["services"]
		require.NoError(t, node.Decode(&services))
		for who, s := range services {
			where := file + ": " + who
			require.Regexp(t, `^\$\{[A-Z]+_IMAGE:-[a-z/-]+:(dev|v?\d+\.\d+\.\d+)\}$`, s.Image, where)
			require.Empty(t, s.ContainerName, where)
			require.Empty(t, s.Restart, where)
			require.NotEmpty(t, s.Labels["io.ferryman.lab"], where)
			require.NotEmpty(t, s.MemLimit, where)
			require.Positive(t, s.CPUs, where)
			require.NotEmpty(t, s.Logging.Options["max-size"], where)
			for _, p := range s.Ports {
				require.Regexp(t, `^127\.0\.0\.1:\$\{LAB_[A-Z_]+_PORT:-\d+\}:\d+$`, p, where)
			}
			for _, v := range s.Volumes {
				require.NotRegexp(t, `ferryman\.toml`, v, "%s: mount the directory, a file's rename would not be seen", where)
			}
		}
	}
}

func TestCompose_EveryVariableIsInTheExample(t *testing.T) {
	example := read(t, "compose/.env.example")
	for _, name := range []string{"core", "observability", "bench"} {
		for _, m := range regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`).FindAllStringSubmatch(read(t, "compose/"+name+".yml"), -1) {
			require.Contains(t, example, "#"+m[1]+"=", "compose/%s.yml", name)
			if !strings.HasSuffix(m[2], ":dev") {
				require.Contains(t, example, "#"+m[1]+"="+m[2]+"\n", "the default of compose/%s.yml", name)
			}
		}
	}
}

func TestCompose_EachFlavourReadsEachCombination(t *testing.T) {
	for _, flavour := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.CommandContext(t.Context(), flavour[0], append(flavour[1:], "version")...).Run() != nil {
			t.Logf("%s is not here", strings.Join(flavour, " "))
			continue
		}
		for _, more := range [][]string{nil, {"observability"}, {"bench"}, {"observability", "bench"}} {
			args := append(flavour[1:len(flavour):len(flavour)], "-f", "compose/core.yml")
			for _, name := range more {
				args = append(args, "-f", "compose/"+name+".yml")
			}
			output(t, ".", flavour[0], append(args, "config", "-q")...)
		}
	}
}
