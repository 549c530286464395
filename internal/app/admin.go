package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// admin is the listener that belongs on no public address: metrics, pprof, and
// whether the process runs.
type admin struct {
	listener net.Listener // nil: none was wanted
	server   *http.Server
	mux      *http.ServeMux
}

func newAdmin(addr string, metrics http.Handler, logger *slog.Logger) (*admin, error) {
	if addr == "" {
		return &admin{mux: http.NewServeMux()}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, errors.Join(errors.New("app: admin listener"), err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, readiness{Status: "ok"}) })
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return &admin{listener, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second, // no write timeout: a profile takes as long as it was asked to
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}, mux}, nil
}

func (a *admin) addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// serve returns when ctx ends; whoever scrapes then is cut off.
func (a *admin) serve(ctx context.Context) error {
	if a.listener == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = a.server.Close() })
	defer stop()
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (a *admin) close() {
	if a.listener != nil {
		_ = a.listener.Close()
		_ = a.server.Close()
	}
}
