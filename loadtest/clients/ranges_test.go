//go:build clients

package clients

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRange_PartsAreTheFilesOwn(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	file, err := os.Open(large)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	part := func(t *testing.T, at, length int64) string {
		t.Helper()
		b := make([]byte, length)
		_, err := file.ReadAt(b, at)
		require.NoError(t, err)
		return string(b)
	}
	everywhere(t, route("/", n.addr), overAll, func(t *testing.T, f *front, p protocol) {
		for _, r := range []struct {
			asked, told string
			at, length  int64
		}{
			{"0-0", "bytes 0-0/104857600", 0, 1},
			{"70000001-78388608", "bytes 70000001-78388608/104857600", 70000001, 8388608},
			{"-5000", "bytes 104852600-104857599/104857600", largeSize - 5000, 5000},
			{"104857000-", "bytes 104857000-104857599/104857600", 104857000, 600},
		} {
			x := fetch(t, p, "-r", r.asked, f.url+"/large")
			require.Equal(t, 206, x.Code, r.asked)
			require.Equal(t, r.told, x.fields.Get("Content-Range"))
			require.True(t, part(t, r.at, r.length) == x.body, "the bytes of %s", r.asked)
		}
		x := fetch(t, p, "-r", "10-19,5000-5009", f.url+"/large")
		require.Equal(t, 206, x.Code)
		require.Contains(t, x.fields.Get("Content-Type"), "multipart/byteranges")
		require.Contains(t, x.body, part(t, 10, 10)+"\r\n--")
		require.Contains(t, x.body, part(t, 5000, 10)+"\r\n--")
		x = fetch(t, p, "-r", "200000000-", f.url+"/large")
		require.Equal(t, 416, x.Code)
		require.Equal(t, "bytes */104857600", x.fields.Get("Content-Range"))
	})
}

func TestRange_ADownloadIsResumedToTheByte(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	want := sum(t, large)
	everywhere(t, route("/", n.addr), overAll, func(t *testing.T, f *front, p protocol) {
		name := filepath.Join(t.TempDir(), "download")
		begun, err := os.Create(name)
		require.NoError(t, err)
		file, err := os.Open(large)
		require.NoError(t, err)
		_, err = io.CopyN(begun, file, 60_000_001)
		require.NoError(t, err)
		file.Close()
		require.NoError(t, begun.Close())
		r := finish(t, program(t, "curl"), "-sS", p.curl, "--cacert", cert, "-C", "-", "-o", name, "-w", "%{http_code} %{size_download}", f.url+"/large")
		require.Equal(t, "206 44857599", r.stdout, r.stderr)
		require.Equal(t, want, sum(t, name))
	})
}
