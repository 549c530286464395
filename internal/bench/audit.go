package bench

// auditReport is what GET /v1/sales/{id}/audit answers, in units.
type auditReport struct {
	Accepted    int64 `json:"accepted"`
	Cancelled   int64 `json:"cancelled"`
	Persisted   int64 `json:"persisted"`
	Rejected    int64 `json:"rejected"`
	Oversold    int64 `json:"oversold"`
	LostUpdates int64 `json:"lost_updates"`
	Undersold   int64 `json:"undersold"`
	Duplicates  int64 `json:"duplicates"`
	Settled     bool  `json:"settled"`
}

func (a auditReport) into(row *Row) {
	row.AuditAccepted = a.Accepted
	row.Cancelled = a.Cancelled
	row.Persisted = a.Persisted
	row.Rejected = a.Rejected
	row.Oversold = a.Oversold
	row.LostUpdates = a.LostUpdates
	row.Undersold = a.Undersold
	row.Duplicates = a.Duplicates
	row.Settled = a.Settled
	if a.Accepted > 0 {
		row.OversellRate = float64(a.Oversold) / float64(a.Accepted)
	}
}
