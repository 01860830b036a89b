// The Kafka receiver of the OpenTelemetry Collector, run for one collection.
//
// usage: program HOST:PORT PROTOCOL_VERSION
//
// Prints one JSON object: "metric name attribute=value ..." to its value.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkametricsreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
)

func main() {
	factory := kafkametricsreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	given := confmap.NewFromStringMap(map[string]any{
		"brokers":             strings.Split(os.Args[1], ","),
		"protocol_version":    os.Args[2],
		"scrapers":            []string{"brokers", "topics", "consumers"},
		"collection_interval": "1s",
	})
	check(component.UnmarshalConfig(given, config))
	found := make(chan pmetric.Metrics, 16)
	sink, err := consumer.NewMetrics(func(_ context.Context, m pmetric.Metrics) error {
		found <- m
		return nil
	})
	check(err)
	settings := receiver.CreateSettings{TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.Logger, err = zap.NewDevelopment()
	check(err)
	settings.ID = component.NewID(component.MustNewType("kafkametrics"))
	running, err := factory.CreateMetricsReceiver(context.Background(), settings, config, sink)
	check(err)
	check(running.Start(context.Background(), componenttest.NewNopHost()))
	select {
	case metrics := <-found:
		tell(metrics)
	case <-time.After(30 * time.Second):
		check(fmt.Errorf("no metrics within 30 s"))
	}
	check(running.Shutdown(context.Background()))
}

// tell prints every data point.
func tell(metrics pmetric.Metrics) {
	found := map[string]int64{}
	for i := 0; i < metrics.ResourceMetrics().Len(); i++ {
		scopes := metrics.ResourceMetrics().At(i).ScopeMetrics()
		for j := 0; j < scopes.Len(); j++ {
			for k := 0; k < scopes.At(j).Metrics().Len(); k++ {
				gather(scopes.At(j).Metrics().At(k), found)
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}

func gather(metric pmetric.Metric, found map[string]int64) {
	points := pmetric.NewNumberDataPointSlice()
	if metric.Type() == pmetric.MetricTypeSum {
		points = metric.Sum().DataPoints()
	} else if metric.Type() == pmetric.MetricTypeGauge {
		points = metric.Gauge().DataPoints()
	}
	for i := 0; i < points.Len(); i++ {
		words := []string{}
		for name, value := range points.At(i).Attributes().AsRaw() {
			words = append(words, fmt.Sprintf("%s=%v", name, value))
		}
		sort.Strings(words)
		found[strings.Join(append([]string{metric.Name()}, words...), " ")] = points.At(i).IntValue()
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
