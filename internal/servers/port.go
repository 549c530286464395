package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Systems number outgoing connections from 32768 (Linux) or 49152 up. A port
// below cannot be taken by some client while a killed server is away.
const firstPort, lastPort = 20000, 31999

// freePorts finds n different ports that nobody listens on right now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		defer listener.Close() // all stay open until the last is found
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("servers: no free port from %d to %d", firstPort, lastPort)
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
