package syncer

import (
	"context"

	"flashsale/internal/stock"
)

// ahead fetches and decodes batches until ctx ends: the next one while the
// last that was taken is at work, and no more than that. What has been fetched
// and isn't taken any more is nobody's loss, for its offsets are not committed.
func (s *Syncer) ahead(ctx context.Context) <-chan sifted {
	batches := make(chan sifted)
	go func() {
		defer close(batches)
		for ctx.Err() == nil {
			messages, err := s.fetch(ctx)
			if err != nil {
				return
			}
			select {
			case batches <- sift(messages):
			case <-ctx.Done():
			}
		}
	}()
	return batches
}

// fetch returns the next batch, or an error when ctx has ended.
func (s *Syncer) fetch(ctx context.Context) ([]stock.Message, error) {
	var messages []stock.Message
	err := s.insist(ctx, ctx, "fetch", func(ctx context.Context) error {
		fetched, err := s.options.Source.Fetch(ctx, s.options.Batch, s.options.Linger)
		messages = fetched
		return err
	})
	return messages, err
}
