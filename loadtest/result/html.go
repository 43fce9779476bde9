package result

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// page is one file without scripts or references to others.
var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>loadtest: {{.Report.Verdict.Outcome}}</title>
<style>
body{font:14px sans-serif;max-width:960px;margin:2em auto;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:3px 8px;text-align:right}
td:first-child,th:first-child{text-align:left}
.PASS{color:#080}.FAIL{color:#c00}.INVALID{color:#a60}pre{background:#f6f6f6;padding:1em;overflow:auto}
</style>
<h1>loadtest: <span class="{{.Report.Verdict.Outcome}}">{{.Report.Verdict.Outcome}}</span></h1>
{{with .Report.Verdict.Reasons}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{.Chart}}
{{with .Report.Budgets}}<table><tr><th>budget<th>limit<th>measured<th>kept</tr>
{{range .}}<tr><td>{{.Name}}<td>{{.Limit}}<td>{{.Measured}}<td>{{if .Kept}}yes{{else}}NO{{end}}</tr>
{{end}}</table>{{end}}
<h2>Environment</h2>
<table>{{range .Environment}}<tr><td>{{index . 0}}<td>{{index . 1}}</tr>
{{end}}</table>
<h2>Report</h2>
<pre>{{.Text}}</pre>
</html>
`))

// WriteHTML writes the report as one file: charts, budgets, environment, text.
func (r *Report) WriteHTML(w io.Writer) error {
	var chart, text strings.Builder
	if err := r.WriteSVG(&chart); err != nil {
		return err
	}
	if err := r.WriteText(&text, Brief); err != nil {
		return err
	}
	m := r.Machine
	return page.Execute(w, map[string]any{
		"Report": r,
		"Chart":  template.HTML(chart.String()), //nolint:gosec // every text in it was escaped
		"Text":   text.String(),
		"Environment": [][2]string{
			{"started", r.Started.Format("2006-01-02 15:04:05 UTC")}, {"system", m.OS + "/" + m.Architecture + " " + m.Kernel},
			{"processor", fmt.Sprintf("%s, %d usable", m.Processor, m.Processors)}, {"memory", fmt.Sprintf("%d MiB", m.MemoryMiB)},
			{"go", m.Go}, {"load average", fmt.Sprintf("%.2f", m.LoadAverage)}, {"stolen", fmt.Sprintf("%.2f%%", 100*r.Stolen)},
		},
	})
}
