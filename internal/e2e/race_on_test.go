//go:build unix && race

package e2e

// raceDetector: the programs are built as the tests are. A race that one of
// them finds makes it exit with another code than 0.
const raceDetector = true
