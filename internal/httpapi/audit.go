package httpapi

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// auditSlack is what an audit may take beyond its waiting.
const auditSlack = 30 * time.Second

// audit may wait longer than the server's write timeout allows other routes.
func (a *api) audit(c *gin.Context, in input) error {
	ctx, wait := c.Request.Context(), in.query.duration("wait")
	// An error says that the writer has no deadlines: a test's recorder.
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(wait + auditSlack))
	audit, err := a.Audit(ctx, in.id, wait, in.query.truth("deep", false))
	if err != nil {
		return a.explainNotFound(ctx, in.id, err)
	}
	return reply(c, http.StatusOK, audit)
}
