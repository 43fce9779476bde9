package labenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are where a lab listens on 127.0.0.1.
type Ports struct {
	Proxy, Metrics, Prometheus, Grafana int
	Admin                               [3]int // of the echoes
	Data                                [3]int // of the echoes, for processes; containers publish none
}

// PortNames are the variables that hold the ports, in the order of the fields, with the usual ports.
var PortNames = []struct {
	Name  string
	Usual int
}{
	{"LAB_PROXY_PORT", 8080}, {"LAB_METRICS_PORT", 9090}, {"LAB_PROMETHEUS_PORT", 9091}, {"LAB_GRAFANA_PORT", 3000},
	{"LAB_ECHO_A_PORT", 9101}, {"LAB_ECHO_B_PORT", 9102}, {"LAB_ECHO_C_PORT", 9103},
	{"LAB_ECHO_A_DATA_PORT", 9111}, {"LAB_ECHO_B_DATA_PORT", 9112}, {"LAB_ECHO_C_DATA_PORT", 9113},
}

func (p *Ports) fields() []*int {
	return []*int{
		&p.Proxy, &p.Metrics, &p.Prometheus, &p.Grafana, &p.Admin[0], &p.Admin[1], &p.Admin[2], &p.Data[0], &p.Data[1], &p.Data[2],
	}
}

// PortsFrom reads the variables; what is not set has the usual port.
func PortsFrom(env func(string) string) (Ports, error) {
	var p Ports
	for i, field := range p.fields() {
		*field = PortNames[i].Usual
		text := env(PortNames[i].Name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return p, fmt.Errorf("%s is %q: it must be a port, 1 to 65535", PortNames[i].Name, text)
		}
		*field = int(n)
	}
	return p, nil
}

// Env are the variables for p.
func (p Ports) Env() []string {
	var env []string
	for i, field := range p.fields() {
		env = append(env, PortNames[i].Name+"="+strconv.Itoa(*field))
	}
	return env
}

// FreePorts finds ports that nobody listens on now.
func FreePorts() (Ports, error) {
	var p Ports
	taken := map[int]bool{}
	for _, field := range p.fields() {
		port, err := freePort(taken)
		if err != nil {
			return p, err
		}
		*field, taken[port] = port, true
	}
	return p, nil
}

// freePort stays below the range that systems take for outgoing connections. A port from that range could
// be taken as soon as its upstream is killed, or a dial to it could even connect to itself.
func freePort(taken map[int]bool) (int, error) {
	const low, high = 20000, 32000
	for range 200 {
		port := low + rand.IntN(high-low)
		if !taken[port] && PortFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d: end some programs", low, high)
}

// PortFree reports whether one can listen on the port of 127.0.0.1.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", addr(port))
	if err != nil {
		return false
	}
	_ = l.Close() // it served its purpose
	return true
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func url(port int) string { return "http://" + addr(port) }
