// The experiments command runs the experiments of all packages and writes what they saw
// to docs/experiments.md, from anywhere in the checkout:
//
//	go run ./examples/experiments
//
// An experiment is a test with an E and a number in its name, such as
// TestE1_Stationary. It simulates clients and servers in virtual time with its own
// random numbers, so it takes no time to speak of and is the same each time, and it
// holds what it promises to bands on every run. Its comment says what that is, and by
// T.Attr it tells a table: the key columns has the names of the columns, and each row
// the cells of one row, both with " | " between them. Experiments with one package are
// among its tests; those that need several are here.
//
// With -check nothing is written: it fails if the page is not what the experiments say.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if the page would change")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := update(ctx, *check); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "experiments:", err)
		os.Exit(1)
	}
}

// pageName is where the page is, from the root of the checkout.
const pageName = "docs/experiments.md"

// update runs the experiments, and writes the page or compares it.
func update(ctx context.Context, check bool) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	all, err := find(root)
	if err != nil {
		return err
	}
	tables, err := run(ctx, root, all)
	if err != nil {
		return err
	}
	want, err := page(all, tables)
	if err != nil {
		return err
	}
	name := filepath.Join(root, filepath.FromSlash(pageName))
	if !check {
		return os.WriteFile(name, want, 0o644)
	}
	have, err := os.ReadFile(name)
	if err == nil && !bytes.Equal(have, want) {
		err = fmt.Errorf("%s is not what the experiments say; run make experiments", pageName)
	}
	return err
}

// checkout is the folder above this one that has the workspace file.
func checkout() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.work")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("not inside a checkout: there is no go.work")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
