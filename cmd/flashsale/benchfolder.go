package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"flashsale/internal/bench"
	"flashsale/internal/bench/chart"
)

// folder is where a report goes. It is made before anything is measured, so that
// minutes are not spent on a report that can't be written.
type folder struct {
	path    string // empty: none was asked for
	remark  string
	made    bool
	written []string
}

// openFolder makes the folder, or a new one within it when there is something in
// it that may be somebody's: nothing is ever overwritten.
func openFolder(dir string) (*folder, error) {
	if dir == "" {
		return new(folder), nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) == 0:
		probe, err := os.CreateTemp(dir, "")
		if err != nil {
			return nil, usage("--out: %q is no folder that can be written to: %w", dir, err)
		}
		return &folder{path: dir}, errors.Join(probe.Close(), os.Remove(probe.Name()))
	case err == nil:
		inner := filepath.Join(dir, time.Now().Format("20060102-150405"))
		for n := 2; ; n++ {
			if err = os.Mkdir(inner, 0o755); !errors.Is(err, os.ErrExist) {
				break
			}
			inner = filepath.Join(dir, fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405"), n))
		}
		if err != nil {
			return nil, usage("--out: %w", err)
		}
		return &folder{path: inner, remark: fmt.Sprintf(" (%s is not empty)", dir), made: true}, nil
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, usage("--out: %w", err)
		}
		return &folder{path: dir, made: true}, nil
	default:
		return nil, usage("--out: %q is no folder that can be written to: %w", dir, err)
	}
}

// closeAfter takes an empty folder away that was made for nothing.
func (f *folder) closeAfter(err error) error {
	if f.made && len(f.written) == 0 {
		_ = os.Remove(f.path)
	}
	return err
}

func (f *folder) write(report *bench.Report) error {
	var links [][2]string
	for _, c := range chart.Of(report) {
		var svg, png bytes.Buffer
		if err := errors.Join(c.SVG(&svg), c.PNG(&png)); err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
		if err := errors.Join(f.file(c.Name+".svg", svg.Bytes()), f.file(c.Name+".png", png.Bytes())); err != nil {
			return err
		}
		links = append(links, [2]string{c.Title, c.Name + ".svg"})
	}
	var text bytes.Buffer
	if err := report.WriteMarkdown(&text, links); err != nil {
		return err
	}
	object, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(f.file("report.md", text.Bytes()), f.file("report.json", append(object, '\n')))
}

// file is new: O_EXCL, as somebody else may have put one there meanwhile.
func (f *folder) file(name string, content []byte) error {
	file, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	f.written = append(f.written, name)
	return nil
}
