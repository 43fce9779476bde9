package deploy

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const nobody = 65532

// cluster is what kubernetes.yaml declares.
type cluster struct {
	config     configMap
	deployment deployment
	services   map[string]service
	budget     disruptionBudget
	autoscaler autoscaler
}

// parseCluster takes each document by its kind; one that is unknown, or there twice, is an error.
func parseCluster(text string) (cluster, error) {
	c := cluster{services: map[string]service{}}
	seen := map[string]bool{}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var h head
		if err := yaml.Unmarshal([]byte(doc), &h); err != nil {
			return c, err
		}
		id := h.APIVersion + " " + h.Kind + " " + h.Metadata.Name
		if seen[id] {
			return c, fmt.Errorf("%s is there twice", id)
		}
		seen[id] = true
		var err error
		switch h.APIVersion + " " + h.Kind {
		case "v1 ConfigMap":
			err = strictYAML(doc, &c.config)
		case "apps/v1 Deployment":
			err = strictYAML(doc, &c.deployment)
		case "v1 Service":
			var s service
			err = strictYAML(doc, &s)
			c.services[h.Metadata.Name] = s
		case "policy/v1 PodDisruptionBudget":
			err = strictYAML(doc, &c.budget)
		case "autoscaling/v2 HorizontalPodAutoscaler":
			err = strictYAML(doc, &c.autoscaler)
		default:
			err = errors.New("unknown kind")
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", id, err)
		}
	}
	return c, nil
}

// strictYAML decodes one document with all its keys known and none twice.
func strictYAML(doc string, into any) error {
	d := yaml.NewDecoder(strings.NewReader(doc))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

func readCluster(t *testing.T) (cluster, pod, container) {
	t.Helper()
	c, err := parseCluster(read(t, "kubernetes.yaml"))
	require.NoError(t, err)
	p := c.deployment.Spec.Template.Spec
	require.Len(t, p.Containers, 1)
	return c, p, p.Containers[0]
}

func TestKubernetes_WhatMustNotPass(t *testing.T) {
	text := read(t, "kubernetes.yaml")
	for old, bad := range map[string]string{
		"readOnly: true}":          "readOnly: true, subPath: ferryman.toml}",
		"readinessProbe":           "readynessProbe",
		"replicas: 2":              "replicas: 2\n  replicas: 3",
		"kind: Service\n":          "kind: Servce\n",
		"  name: ferryman-metrics": "  name: ferryman",
	} {
		require.Contains(t, text, old)
		_, err := parseCluster(strings.Replace(text, old, bad, 1))
		require.Error(t, err, bad)
	}
}

func TestKubernetes_PortsAreTheDefaults(t *testing.T) {
	c, _, ferryman := readCluster(t)
	ports := map[string]int{}
	for _, p := range ferryman.Ports {
		ports[p.Name] = p.ContainerPort
	}
	require.Equal(t, map[string]int{"http": port(t, "bind"), "metrics": port(t, "metrics-bind")}, ports)
	require.NotContains(t, strings.Join(ferryman.Args, " "), "bind", "the ports above are the defaults")
	require.Len(t, c.services, 2)
	for name, want := range map[string]string{"ferryman": "http", "ferryman-metrics": "metrics"} {
		s := c.services[name].Spec
		require.Len(t, s.Ports, 1, name)
		require.Equal(t, want, s.Ports[0].TargetPort, name)
		require.Equal(t, c.deployment.Spec.Template.Metadata.Labels, s.Selector, name)
	}
	require.Equal(t, 80, c.services["ferryman"].Spec.Ports[0].Port)
	require.Equal(t, port(t, "metrics-bind"), c.services["ferryman-metrics"].Spec.Ports[0].Port)
}

func TestKubernetes_ConfigurationIsValidAndMountedAsADirectory(t *testing.T) {
	c, p, ferryman := readCluster(t)
	require.Len(t, p.Volumes, 1)
	require.Equal(t, c.config.Metadata.Name, p.Volumes[0].ConfigMap.Name)
	require.Len(t, ferryman.VolumeMounts, 1)
	mount := ferryman.VolumeMounts[0]
	require.Equal(t, p.Volumes[0].Name, mount.Name)
	require.True(t, mount.ReadOnly)
	require.Len(t, c.config.Data, 1)
	for name, text := range c.config.Data {
		require.Equal(t, []string{"--config", path.Join(mount.MountPath, name)}, ferryman.Args[:2])
		accepted(t, text)
	}
}

func TestKubernetes_ProbesAskTheMetricsListener(t *testing.T) {
	_, _, ferryman := readCluster(t)
	require.Equal(t, "/readyz", ferryman.Readiness.HTTPGet.Path)
	require.Equal(t, "/healthz", ferryman.Liveness.HTTPGet.Path)
	for _, p := range []probe{ferryman.Readiness, ferryman.Liveness} {
		require.Equal(t, "metrics", p.HTTPGet.Port)
		require.Positive(t, p.Period)
		require.LessOrEqual(t, p.Timeout, p.Period)
	}
}

func TestKubernetes_WaitsLongerThanTheSleepAndTheDrain(t *testing.T) {
	_, p, ferryman := readCluster(t)
	sleep := time.Duration(ferryman.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	require.Positive(t, sleep)
	require.Greater(t, time.Duration(p.GracePeriod)*time.Second, sleep+drain(t))
}

func TestKubernetes_RunsWithoutPrivileges(t *testing.T) {
	_, p, ferryman := readCluster(t)
	require.True(t, p.SecurityContext.RunAsNonRoot)
	require.Equal(t, nobody, p.SecurityContext.RunAsUser)
	require.Equal(t, nobody, p.SecurityContext.RunAsGroup)
	require.Equal(t, "RuntimeDefault", p.SecurityContext.SeccompProfile.Type)
	s := ferryman.SecurityContext
	require.True(t, s.ReadOnlyRootFilesystem)
	require.Equal(t, []string{"ALL"}, s.Capabilities.Drop)
	for name, off := range map[string]*bool{
		"allowPrivilegeEscalation": s.AllowPrivilegeEscalation, "automountServiceAccountToken": p.AutomountToken,
		"enableServiceLinks": p.ServiceLinks,
	} {
		require.NotNil(t, off, "%s is on where it is not written", name)
		require.False(t, *off, name)
	}
}

func TestKubernetes_NeverWithoutAPod(t *testing.T) {
	c, p, ferryman := readCluster(t)
	d, a := c.deployment.Spec, c.autoscaler.Spec
	pods := d.Template.Metadata.Labels
	require.NotEmpty(t, pods)
	require.Equal(t, pods, d.Selector.MatchLabels)
	require.Equal(t, pods, c.budget.Spec.Selector.MatchLabels)
	require.Len(t, p.Spread, 1)
	require.Equal(t, pods, p.Spread[0].LabelSelector.MatchLabels)
	require.Equal(t, 2, d.Replicas)
	require.Zero(t, d.Strategy.RollingUpdate.MaxUnavailable)
	require.Positive(t, c.budget.Spec.MinAvailable)
	require.Less(t, c.budget.Spec.MinAvailable, d.Replicas, "no node could ever be drained")

	require.Equal(t, c.deployment.Metadata.Name, a.Target.Name)
	require.Equal(t, c.deployment.APIVersion+" "+c.deployment.Kind, a.Target.APIVersion+" "+a.Target.Kind)
	require.Equal(t, d.Replicas, a.MinReplicas)
	require.Greater(t, a.MaxReplicas, a.MinReplicas)
	require.Len(t, a.Metrics, 1)
	require.Contains(t, ferryman.Resources.Requests, a.Metrics[0].Resource.Name, "utilization is a share of the request")
	require.Contains(t, ferryman.Resources.Limits, "memory")
	require.NotContains(t, ferryman.Image, ":latest")
}
