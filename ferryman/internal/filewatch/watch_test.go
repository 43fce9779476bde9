package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 10 * time.Second

// told is what a watched reports.
type told struct {
	contents string
	err      error
}

// judging is a watched without files: a test says what each look finds, and when.
func judging(valid func([][]byte) bool) (at func(ms int, err error, contents ...string) time.Duration, reports *[]told, w *watched) {
	reports = &[]told{}
	w = &watched{Files: Files{Valid: valid}}
	w.on = func(contents [][]byte, err error) {
		text := ""
		for _, c := range contents {
			text += string(c) + ";"
		}
		*reports = append(*reports, told{text, err})
	}
	start := time.Now()
	return func(ms int, err error, contents ...string) time.Duration {
		l := look{err: err}
		for _, c := range contents {
			l.contents = append(l.contents, []byte(c))
		}
		return w.judge(l, start.Add(time.Duration(ms)*time.Millisecond))
	}, reports, w
}

// Case 313: a pair is written file by file, and a chain certificate by certificate.
func TestJudge_ContentsAreReportedOnceTheyHaveRested(t *testing.T) {
	at, reports, _ := judging(nil)
	require.Equal(t, Look, at(0, nil, "cert1", "key1"))
	require.Equal(t, Settle, at(300, nil, "cert", "key1"))
	require.Equal(t, Settle, at(400, nil, "cert2", "key1"))
	for ms := 500; ms < 5000; ms += 100 { // it never rests
		at(ms, nil, "cert"+string(rune('a'+ms/100%2)), "key1")
	}
	require.Equal(t, Settle, at(5000, nil, "cert2", "key2"))
	require.Equal(t, Settle/2, at(5100, nil, "cert2", "key2"))
	require.Empty(t, *reports)
	require.Equal(t, Look, at(5200, nil, "cert2", "key2"))
	require.Equal(t, []told{{"cert2;key2;", nil}}, *reports)
	at(6000, nil, "cert2", "key2")
	at(7000, nil, "cert2", "key2")
	require.Len(t, *reports, 1)
}

func TestJudge_AnEventBetweenTwoLooksIsNoRest(t *testing.T) {
	at, reports, w := judging(nil)
	at(0, nil, "a")
	at(300, nil, "b")
	w.stirred = true // it was something else meanwhile
	require.Equal(t, Settle, at(500, nil, "b"))
	require.Empty(t, *reports)
	at(700, nil, "b")
	require.Len(t, *reports, 1)
}

func TestJudge_WhatNeverRestsIsTakenIfValid(t *testing.T) {
	at, reports, _ := judging(func(c [][]byte) bool { return c[0][0] == 'v' })
	at(0, nil, "a")
	for ms := 100; ms <= 590; ms += 70 {
		at(ms, nil, "v"+time.Duration(ms).String())
	}
	require.Empty(t, *reports)
	at(600, nil, "invalid")
	require.Empty(t, *reports)
	at(650, nil, "valid")
	require.Equal(t, []told{{"valid;", nil}}, *reports)
}

// Case 317: want of descriptors or memory is no content of the file.
func TestJudge_ShortageIsNoReportAndIsTriedAgain(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		short := &Error{"a", "", cause}
		at, reports, w := judging(nil)
		require.Equal(t, Look, at(0, short))
		require.Equal(t, Look, at(300, nil, "a"), "the first content")
		require.Equal(t, Settle, at(600, nil, "b"))
		for ms := 700; ms < 60_000; ms += 300 {
			require.Equal(t, Look, at(ms, short))
		}
		require.Empty(t, *reports)
		w.due = true // a poke waits as well
		at(60_000, short)
		require.Empty(t, *reports)
		at(60_300, nil, "b")
		require.Equal(t, []told{{"b;", nil}}, *reports)
		at(61_000, short)
		at(62_000, nil, "b")
		require.Len(t, *reports, 1)
	}
}

func TestJudge_OtherErrorsAreContents(t *testing.T) {
	at, reports, _ := judging(nil)
	gone := &Error{"a", "there is no such file", syscall.ENOENT}
	at(0, nil, "a")
	at(100, gone)
	at(300, gone)
	at(900, gone)
	require.Equal(t, []told{{"", gone}}, *reports)
	at(1000, nil, "a")
	at(1200, nil, "a")
	require.Len(t, *reports, 2)
}

func TestWatch_TellsOfFilesInSeveralDirectories(t *testing.T) {
	t.Parallel()
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
	write(a, "1")
	write(b, "1")
	reports := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	f := Files{Names: []string{a, b}, Kind: "a test", MiB: 1, Known: [][]byte{[]byte("0"), []byte("1")}}
	go func() {
		done <- Watch(ctx, f, nil, func(c [][]byte, err error) {
			if err != nil {
				reports <- err.Error()
				return
			}
			reports <- string(c[0]) + string(c[1])
		})
	}()
	next := func() string {
		select {
		case s := <-reports:
			return s
		case <-time.After(patience):
			return "nothing"
		}
	}
	require.Equal(t, "11", next(), "what the caller does not know")
	write(b, "2")
	require.Equal(t, "12", next())
	write(a, "3")
	require.Equal(t, "32", next())
	require.NoError(t, os.Remove(b))
	require.Equal(t, b+": there is no such file: create it or name another one", next())
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
