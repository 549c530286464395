// Package catalogue reads a catalogue of sales from CSV, all of it or nothing.
// Whoever wrote the file is told everything that is wrong with it at once: the
// line, the column, the value and what is allowed there.
package catalogue
