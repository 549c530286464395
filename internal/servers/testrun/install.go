package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const installTimeout = 5 * time.Minute

//go:embed install.sh
var installScript string

// install gets what is missing, when that needs nobody's password. It is no
// failure when it can't: the caller sees what is there.
func install(ctx context.Context, stdout io.Writer, stores []*store) {
	if packages := missingPackages(stores); len(packages) > 0 && os.Geteuid() == 0 {
		if err := aptInstall(ctx, stdout, packages); err != nil {
			fmt.Fprintln(stdout, "testrun: INSTALLATION FAILED:", err)
		}
	}
	if err := fetch(ctx, stdout, stores); err != nil {
		fmt.Fprintln(stdout, "testrun: DOWNLOAD FAILED:", err)
	}
}

// installAll is install for people: with sudo, and with an error.
func installAll(ctx context.Context, stdout io.Writer) error {
	stores := storesOfARun()
	if packages := missingPackages(stores); len(packages) > 0 {
		if err := aptInstall(ctx, stdout, packages); err != nil {
			return err
		}
	}
	if err := fetch(ctx, stdout, stores); err != nil {
		return err
	}
	for _, s := range stores {
		if err := s.available(); err != nil {
			return fmt.Errorf("%s: still missing: %w", s.name, err)
		}
	}
	fmt.Fprintln(stdout, "testrun: Redis, MariaDB, Kafka, etcd and ZooKeeper can be started on this machine, and promtool be called")
	return nil
}

// missingPackages lists what has to be installed; Maven is no longer needed
// once Kafka's jars are there.
func missingPackages(stores []*store) []string {
	var packages []string
	for _, s := range stores {
		if s.available() == nil {
			continue
		}
		for _, name := range s.packages {
			program := map[string]string{"default-jre-headless": "java", "maven": "mvn"}[name]
			if program != "" {
				if _, err := exec.LookPath(program); err == nil {
					continue
				}
			}
			packages = append(packages, name)
		}
	}
	return packages
}

// aptInstall installs Debian packages and sees to it that no service of theirs
// is started: the tests bring their own, and a developer's ports are his.
func aptInstall(ctx context.Context, stdout io.Writer, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no apt-get here; install " + strings.Join(packages, ", ") +
			" (macOS: brew install redis mariadb openjdk maven etcd prometheus)")
	}
	fmt.Fprintln(stdout, "testrun: installing", strings.Join(packages, " "))
	args := append([]string{"sh", "-c", installScript, "install"}, packages...)
	if os.Geteuid() != 0 {
		args = append([]string{"sudo"}, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	var output strings.Builder
	// Not in a process group of its own: sudo asks at the terminal. And asked
	// to end, not killed: dpkg would leave half a package.
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &output, &output
	if err := cmd.Run(); err != nil {
		text := output.String()
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(text[max(0, len(text)-2000):]))
	}
	return nil
}

// fetch downloads what is not packaged.
func fetch(ctx context.Context, stdout io.Writer, stores []*store) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, s := range stores {
		if s.fetch == nil || s.available() == nil {
			continue
		}
		fmt.Fprintf(stdout, "testrun: fetching %s with Maven, once\n", s.name)
		if err := s.fetch(ctx); err != nil {
			return err
		}
	}
	return nil
}
