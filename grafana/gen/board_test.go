package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const committed = "../dashboards/ferryman.json"

// board is the committed JSON, as far as tests read it.
type board struct {
	Panels      []panel
	Annotations struct{ List []annotation }
	Templating  struct{ List []variable }
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  *datasource
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	Options     struct {
		Legend *struct{ ShowLegend, Show bool } // a heatmap has the second
	}
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Panels []panel
}

type target struct {
	Datasource         *datasource
	Expr, LegendFormat string
	RefID              string
}

type datasource struct{ Type, UID string }

type annotation struct {
	Name, Expr, TitleFormat, TagKeys string
	Datasource                       *datasource
	Enable                           bool
}

type variable struct {
	Name, Type string
	Query      string
	Current    struct{ Text, Value string }
}

func readBoard(t *testing.T) board {
	t.Helper()
	text, err := os.ReadFile(committed)
	require.NoError(t, err)
	return parseBoard(t, text)
}

func parseBoard(t *testing.T, text []byte) (b board) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

// graphs are the panels that show something, rows left out.
func (b board) graphs() (all []panel) {
	for _, p := range b.Panels {
		if p.Type != "row" {
			all = append(all, p)
		}
	}
	return all
}

// expression is one that is to be found in a live lab, and where it was found.
type expression struct{ where, expr, template string }

// expressions are those of all panels and annotations, each with its legend or title.
func (b board) expressions() (all []expression) {
	for _, p := range b.graphs() {
		for _, q := range p.Targets {
			all = append(all, expression{"panel " + p.Title + " " + q.RefID, q.Expr, q.LegendFormat})
		}
	}
	for _, a := range b.Annotations.List {
		all = append(all, expression{"annotation " + a.Name, a.Expr, a.TitleFormat})
	}
	return all
}

func TestDashboard_IsWhatTheProgramWrites(t *testing.T) {
	text, err := os.ReadFile(committed)
	require.NoError(t, err)
	fresh, err := render()
	require.NoError(t, err)
	require.Equal(t, string(text), string(fresh), "write it again: go run ./grafana/gen grafana/dashboards/ferryman.json")
}

func TestDashboard_HasTheRowsOfTheLab(t *testing.T) {
	var rows []string
	for _, p := range readBoard(t).Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
	}
	require.Equal(t, []string{
		"Overview", "Routes: rate, errors, duration", "Upstreams: circuits", "Latency: request head to response head", "Resource usage",
		"Load generator and upstreams",
	}, rows)
}

// A unit of the grid is 38 pixels: 34 of them are what a screen of 1440 lines shows.
func TestDashboard_FitsOneScreen(t *testing.T) {
	bottom := 0
	for _, p := range readBoard(t).Panels {
		bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
	}
	require.LessOrEqual(t, bottom, 34)
}
