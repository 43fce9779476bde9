package route_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/route"
)

// Conformance cases 193 to 198, and 201 as far as the path goes.
func TestTable_ResolveRefusesWhatCouldBeReadInAnotherWay(t *testing.T) {
	tests := []struct {
		paths string // separated by spaces
		want  string // the route
		err   error
	}{
		{paths: "/api /api/ /api/x", want: "/api"},
		{paths: "/apix /ap /api-x /api.x /api;p /API /x /", want: "/"},
		{paths: "/api/v1 /api/v1/", want: "/api/v1"},
		{paths: "/api/v10", want: "/api"},

		{paths: "/api/../x /api/./v1 /x/../api/v1 /api/v1/.. /.. /../api /. /./ /../", err: route.ErrDotSegment},
		{paths: "/%2e /%2E /.%2e /%2e. /%2E%2e /api/%2e%2e/x /x/%2e/api /api/v1/%2E%2E", err: route.ErrDotSegment},
		{paths: "/... /.a /..a /a. /a.. /.a/..b/c... /%2e%2e%2e /%2ea /.well-known/x", want: "/"},
		// 310: whatever ends a segment for some upstream, or begins one
		{paths: "/api/..;/x /x/.;a=b/c /..; /.; /x/..;;/y /x/..%3b/y /x/.%3B /x/%2e.;y", err: route.ErrDotSegment},
		{paths: "/x/..%2fadmin /x/..%2F /x/%2e%2e%5cadmin /x/.%5C /x%2f../admin /x%5c..%5cadmin /x%2F%2E /a%2f..", err: route.ErrDotSegment},
		{paths: "/%2f../x /%5c.; /x/y;z%2f..;z /a;/..%2f /;/..", err: route.ErrDotSegment},
		{paths: "/..foo /x/..%20y /a;.. /a;../b /a;.;/b /x/;/y /x/;.. /...;x /..a%2f /x%2f.a /x%5c... /a%3b.. /x/.%25 /%252e%252e%252fx", want: "/"},

		{paths: "/api%2Fv1/x /api%2fv1 /a%2fb /api%5cv1 /api%0d%0aX:y /api%20v1 /api%3Fx /api%23x /api%3bx", want: "/"},
		{paths: "/api/%2F /api/%2fv1 /api/v1%2F", want: "/api"},
		{paths: "/api%00 /%00 /api/v1/%00x", err: route.ErrNUL},
		{paths: `/api\v1 /\`, err: route.ErrBackslash},

		{paths: "//api/v1 /api//v1 //api ///api/v1 //api//v1 //%61pi", err: route.ErrAmbiguous},
		{paths: "/// // //evil.example/x /x//y /x//api", want: "/"},
		{paths: "/api//x /api/// /api///x", want: "/api"},
		{paths: "/api/v1//x", want: "/api/v1"},

		{paths: "/%61pi/v1 /ap%69 /%61%70%69/x", err: route.ErrAmbiguous},
		{paths: "/api/v%31 /api/%761/x", err: route.ErrAmbiguous},
		{paths: "/%61bc /%7Eu /%2Dx", want: "/"},
		{paths: "/api/%7Eu /api/%41", want: "/api"},
		{paths: "/%2561pi /api%252Fv1", want: "/"}, // decoded once, never twice

		{paths: "/%c0%af /%c0%ae%c0%ae/ /%ff /%E4%B8%AD /\xc0\xaf /\xff", want: "/"},
		{paths: "/% /%2 /a%2 /%g1 /%1g /%u002f /%% /%%20 /api/%2 /%-1 /%+1 /%\x101 /%/a", err: route.ErrEscape},
		{paths: "/x#frag /# /api#/v1", err: route.ErrFragment},
		{paths: "a admin/a a:80 */x api # \\", err: route.ErrNotRooted},
		{paths: "*", want: "/"},
	}
	table := rig(t)
	for _, test := range tests {
		for path := range strings.SplitSeq(test.paths, " ") {
			prefix, v, ok, err := table.Resolve([]byte(path))
			if test.err != nil {
				require.ErrorIs(t, err, test.err, path)
				require.False(t, ok, path)
				require.Empty(t, prefix+v, path)
				continue
			}
			require.NoError(t, err, path)
			require.True(t, ok, path)
			require.Equal(t, test.want, prefix, path)
			require.Equal(t, "to "+test.want, v, path)
		}
	}
	_, _, _, err := table.Resolve(nil)
	require.ErrorIs(t, err, route.ErrNotRooted)
}

func TestCheck_RefusesWhatResolveRefusesWhateverTheRoutesAre(t *testing.T) {
	for path, want := range map[string]error{
		"/": nil, "/a/b": nil, "//api": nil, "/%61pi": nil, "*": nil, "/a%2Fb": nil,
		"": route.ErrNotRooted, "a": route.ErrNotRooted, "**": route.ErrNotRooted, "/..": route.ErrDotSegment,
		"/%2": route.ErrEscape, "/%00": route.ErrNUL, `/\`: route.ErrBackslash, "/#": route.ErrFragment,
	} {
		require.Equal(t, want, route.Check([]byte(path)), path)
	}
}
