package metrics

// Batches returns a function that counts what the syncer is done with: the
// messages of a batch, and how many of them it buried.
func (m *Metrics) Batches() (batch func(messages, buried int)) {
	m.registry.MustRegister(m.batchSize, m.deadLetters)
	return func(messages, buried int) {
		m.batchSize.Observe(float64(messages))
		m.deadLetters.Add(float64(buried))
	}
}
