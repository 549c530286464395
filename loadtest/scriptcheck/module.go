package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grafana/sobek"
)

// loader finds the modules of one VU: the script's own files below its folder,
// and k6's modules. Anything else, a remote import for one, is refused.
type loader struct {
	root     string
	builtins map[string]*builtin
	files    map[string]sobek.ModuleRecord
	paths    map[sobek.ModuleRecord]string
}

func newLoader(script string, builtins map[string]*builtin) (*loader, error) {
	path, err := filepath.Abs(script)
	if err != nil {
		return nil, err
	}
	return &loader{
		root: filepath.Dir(path), builtins: builtins,
		files: map[string]sobek.ModuleRecord{}, paths: map[sobek.ModuleRecord]string{},
	}, nil
}

// resolve is sobek's hook for an import in the module from.
func (l *loader) resolve(from any, specifier string) (sobek.ModuleRecord, error) {
	if b, ok := l.builtins[specifier]; ok {
		return b, nil
	}
	if !strings.HasPrefix(specifier, "./") && !strings.HasPrefix(specifier, "../") {
		return nil, fmt.Errorf("import %q: neither a file of the script nor a k6 module that scriptcheck has", specifier)
	}
	dir := l.root
	if record, ok := from.(sobek.ModuleRecord); ok {
		dir = filepath.Dir(l.paths[record])
	}
	return l.file(filepath.Join(dir, specifier))
}

func (l *loader) file(path string) (sobek.ModuleRecord, error) {
	if record, ok := l.files[path]; ok {
		return record, nil
	}
	if rel, err := filepath.Rel(l.root, path); err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("import %q: outside the script's folder", path)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	record, err := sobek.ParseModule(path, string(source), l.resolve)
	if err != nil {
		return nil, err
	}
	l.files[path], l.paths[record] = record, path
	return record, nil
}

// load parses, links and evaluates the script, and returns its exports.
func (l *loader) load(rt *sobek.Runtime, script string) (*sobek.Object, error) {
	record, err := l.file(filepath.Join(l.root, filepath.Base(script)))
	if err != nil {
		return nil, err
	}
	if err := record.Link(); err != nil {
		return nil, err
	}
	promise := rt.CyclicModuleRecordEvaluate(record.(sobek.CyclicModuleRecord), l.resolve)
	switch promise.State() {
	case sobek.PromiseStateFulfilled:
		return rt.NamespaceObjectFor(record), nil
	case sobek.PromiseStateRejected:
		return nil, rejection(promise.Result())
	default:
		return nil, fmt.Errorf("top-level await is not in scriptcheck")
	}
}

// rejection makes an error of what a script threw.
func rejection(thrown sobek.Value) error {
	if err, ok := thrown.Export().(error); ok {
		return err
	}
	if object, ok := thrown.(*sobek.Object); ok {
		if stack := object.Get("stack"); stack != nil && !sobek.IsUndefined(stack) {
			return fmt.Errorf("%s", stack)
		}
	}
	return fmt.Errorf("%s", thrown)
}

// builtin is one of k6's modules: its exports, and all of them as default.
type builtin struct {
	exports map[string]sobek.Value
}

var _ sobek.ModuleRecord = (*builtin)(nil)

// newBuiltin takes Go values that the runtime can convert.
func newBuiltin(rt *sobek.Runtime, exports map[string]any) *builtin {
	b := &builtin{exports: map[string]sobek.Value{}}
	all := rt.NewObject()
	for name, value := range exports {
		b.exports[name] = rt.ToValue(value)
		must(all.Set(name, b.exports[name]))
	}
	if _, own := b.exports["default"]; !own {
		b.exports["default"] = all
	}
	return b
}

func (b *builtin) Link() error { return nil }

func (b *builtin) Evaluate(rt *sobek.Runtime) *sobek.Promise {
	promise, resolve, _ := rt.NewPromise()
	must(resolve(b))
	return promise
}

func (b *builtin) GetBindingValue(name string) sobek.Value { return b.exports[name] }

func (b *builtin) GetExportedNames(callback func([]string), _ ...sobek.ModuleRecord) bool {
	names := make([]string, 0, len(b.exports))
	for name := range b.exports {
		names = append(names, name)
	}
	slices.Sort(names)
	callback(names)
	return true
}

func (b *builtin) ResolveExport(name string, _ ...sobek.ResolveSetElement) (*sobek.ResolvedBinding, bool) {
	if _, ok := b.exports[name]; !ok {
		return nil, false
	}
	return &sobek.ResolvedBinding{Module: b, BindingName: name}, false
}

// must is for what fails only when scriptcheck itself is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
