package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// fail answers with the problem that err is.
func (a *api) fail(c *gin.Context, err error) {
	p := problemOf(err)
	c.Set(errorKey, err)
	c.Set(codeKey, p.Code)
	if c.Request.Method == http.MethodPost && slices.Contains(a.outcomes, c.FullPath()) {
		c.Header("X-Outcome", p.Code)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", `Bearer realm="flashsale"`)
	case http.StatusLocked:
		c.Header("Retry-After", "1")
	}
	write(c, p.Status, "application/problem+json", p)
}

// reply answers with a JSON body.
func reply(c *gin.Context, status int, body any) error {
	write(c, status, "application/json", body)
	return nil
}

func write(c *gin.Context, status int, mediaType string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // our own types always marshal
	}
	send(c, status, mediaType, append(data, '\n'))
}

// Header values that are always the same, so that no answer makes its own.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
)

// send answers with a body that is written already.
func send(c *gin.Context, status int, mediaType string, body []byte) {
	header := c.Writer.Header()
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	c.Data(status, mediaType, body)
}

func join(names []string) string { return strings.Join(names, ", ") }
