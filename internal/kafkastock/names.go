package kafkastock

// DefaultPrefix is the installation that has the plain names.
const DefaultPrefix = "fs"

// Topics names what one installation has in Kafka.
type Topics struct {
	Deductions string // the events, keyed by sale
	Dead       string // dead letters: what can never be processed
	Group      string // the syncers' consumer group
}

// Names gives the names of an installation; "" is DefaultPrefix.
func Names(prefix string) Topics {
	suffix := ""
	if prefix != "" && prefix != DefaultPrefix {
		suffix = "." + prefix
	}
	return Topics{
		Deductions: "stock.deductions" + suffix,
		Dead:       "stock.deductions" + suffix + ".dead",
		Group:      "flashsale-syncer" + suffix,
	}
}
