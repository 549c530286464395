// Package deploy holds what is delivered beside the programs.
package deploy

import _ "embed"

// Catalogue is catalogue.csv: the sales that the demo serves.
//
//go:embed catalogue.csv
var Catalogue []byte
