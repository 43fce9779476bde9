package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// query is an expression and how its series are called.
type query struct{ expr, legend string }

// targets are queries as Grafana has them, named A, B and so on.
func targets(format prometheus.PromQueryFormat, queries []query) []cog.Builder[variants.Dataquery] {
	var all []cog.Builder[variants.Dataquery]
	for i, q := range queries {
		all = append(all, prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend).
			Format(format).Range().RefId(string(rune('A'+i))))
	}
	return all
}

// graph shows how something went. look completes "Look for".
func graph(title, look, unit string, queries ...query) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description("Look for " + look).Datasource(source).Unit(unit).
		Targets(targets(prometheus.PromQueryFormatTimeSeries, queries)).Min(0).
		LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom))
}

// bars suit counts of rare events.
func bars(title, look, unit string, queries ...query) *timeseries.PanelBuilder {
	return graph(title, look, unit, queries...).DrawStyle(common.GraphDrawStyleBars).FillOpacity(80)
}

// number shows the last value in the colour of its step.
func number(title, look, unit string, steps []dashboard.Threshold, queries ...query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description("Look for " + look).Datasource(source).Unit(unit).
		Targets(targets(prometheus.PromQueryFormatTimeSeries, queries)).
		Thresholds(thresholds(steps)).NoValue("-").
		Orientation(common.VizOrientationAuto).GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// states shows a value that is one of few, as a band in time.
func states(title, look string, of []state, queries ...query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().Title(title).Description("Look for " + look).Datasource(source).Unit(units.NoUnit).
		Targets(targets(prometheus.PromQueryFormatTimeSeries, queries)).
		Mappings(mappings(of)).ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor("text")).
		ShowValue(common.VisibilityModeNever).MergeValues(true).RowHeight(0.8).FillOpacity(85).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom))
}

// clouds shows a histogram over time; q has to be by le.
func clouds(title, look, unit string, q query) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Title(title).Description("Look for " + look).Datasource(source).Unit(unit).
		Targets(targets(prometheus.PromQueryFormatHeatmap, []query{q})).Calculate(false).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit)).ShowLegend()
}

// state is what a value means.
type state struct{ value, text, color string }

func mappings(of []state) []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for i, s := range of {
		options[s.value] = dashboard.ValueMappingResult{Text: new(s.text), Color: new(s.color), Index: new(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

func thresholds(steps []dashboard.Threshold) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// from says the colour below all steps, and bad the one from value on.
func from(color string, steps ...dashboard.Threshold) []dashboard.Threshold {
	return append([]dashboard.Threshold{{Color: color}}, steps...)
}

func step(value float64, color string) dashboard.Threshold {
	return dashboard.Threshold{Value: new(value), Color: color}
}

// property overrides one of a series' settings.
func property(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

// dashed is the look of a line that is a limit, not a measurement.
func dashed() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		property("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{6, 6}}),
		property("custom.fillOpacity", 0),
		property("color", map[string]any{"mode": "fixed", "fixedColor": "text"}),
	}
}
