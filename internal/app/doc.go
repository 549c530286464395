// Package app wires the parts into the two programs that serve: the API, with
// the relay in it, and the syncer. It is the only place that knows every
// adapter. Each program's settings come from FLASHSALE_ variables and flags.
package app
