package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// fail answers with the problem that err is.
func (a *api) fail(c *gin.Context, err error) {
	p := problemOf(err)
	c.Set(errorKey, err)
	c.Set(codeKey, p.Code)
	if c.GetBool(outcomeKey) {
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
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Data(status, mediaType, append(data, '\n'))
}

func join(names []string) string { return strings.Join(names, ", ") }
