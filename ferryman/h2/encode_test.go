package h2

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
)

func TestAppendField_DecodesToWhatWentIn(t *testing.T) {
	want := []hpack.HeaderField{{Name: ":status", Value: "200"}}
	block := AppendStatus([]byte{NoDynamicTable}, 200)
	add := func(name, value string) {
		block = AppendField(block, name, value)
		want = append(want, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	add("Content-TYPE", "text/html")
	add("X-!#$%&'*+-.^_`|~09[@", "")
	for _, n := range []int{1, 126, 127, 128, 254, 255, 256, 16383, 16510, 16511, 16512, 60000, 1 << 20} {
		add(fmt.Sprint("x-", n), strings.Repeat("v", n))
	}
	add(strings.Repeat("N", 300), "\x80\xff\t ~")
	got, err := hpack.NewDecoder(0, nil).DecodeFull(block)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAppendStatus_EveryStatus(t *testing.T) {
	dec := hpack.NewDecoder(0, nil)
	for status := 100; status < 1000; status++ {
		got, err := dec.DecodeFull(AppendStatus(nil, status))
		require.NoError(t, err)
		require.Equal(t, []hpack.HeaderField{{Name: ":status", Value: fmt.Sprint(status)}}, got)
	}
}
