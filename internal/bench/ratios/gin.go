//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"flashsale/internal/app"
)

// serveGin is Gin without back end, as one writes it without thinking about
// speed: an engine without middleware, a handler that binds the purchase's JSON,
// looks at the Idempotency-Key, and answers 201 with the members of a receipt by
// c.JSON. It checks nothing, stores nothing, counts nothing and logs nothing.
func serveGin(ctx context.Context, stderr io.Writer) error {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/v1/sales/:id/purchases", func(c *gin.Context) {
		var request struct {
			UserID   string `json:"user_id"`
			Quantity int64  `json:"quantity"`
		}
		if err := c.ShouldBindJSON(&request); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		type receipt struct {
			PurchaseID string `json:"purchase_id"`
			SaleID     string `json:"sale_id"`
			Quantity   int64  `json:"quantity"`
			Remaining  int64  `json:"remaining"`
			Fence      uint64 `json:"fence"`
		}
		id := c.Param("id")
		c.JSON(http.StatusCreated, receipt{
			PurchaseID: id + ".abcdefghijklmnopqrstuvwx" + c.GetHeader("Idempotency-Key")[:2],
			SaleID:     id, Quantity: request.Quantity, Remaining: 999_123_456,
		})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(stderr, `{"msg":%q,"addr":%q}`+"\n", listening, listener.Addr())
	_ = server.Serve(listener)
	return nil
}

// serveSingle is cmd/api, but for one script call a purchase.
func serveSingle(ctx context.Context, stderr io.Writer) error {
	cfg, _, err := app.ParseConfig(app.APIProgram, nil, os.Environ(), io.Discard)
	if err != nil {
		return err
	}
	cfg.Uncombined = true
	api, err := app.NewAPI(ctx, cfg, cfg.NewLogger(stderr))
	if err != nil {
		return err
	}
	return api.Run(ctx)
}
