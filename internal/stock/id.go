package stock

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digestPattern is what follows the dot of a purchase ID: 128 bits in base32.
var digestPattern = regexp.MustCompile(`^[a-z2-7]{26}$`)

// PurchaseID names the purchase that a user asks for under an idempotency key:
// "<sale_id>.<26 characters>". The same three values name the same purchase,
// whichever process is asked and however often, which is what makes a client's
// repetition harmless. The sale stands in front because who has nothing but the
// ID must find the shard that the purchase is kept on.
func PurchaseID(saleID, userID, idempotencyKey string) string {
	hash := sha256.New()
	for _, part := range []string{saleID, userID, idempotencyKey} {
		// Each part is preceded by its length: ("ab", "c") is not ("a", "bc").
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:]) // hash.Hash never fails
		hash.Write([]byte(part))
	}
	return saleID + "." + idEncoding.EncodeToString(hash.Sum(nil)[:16])
}

// RandomKey is the idempotency key of a request that came without one: 32
// hexadecimal digits read from random. No client can hit upon it, so such a
// request is never taken for the repetition of another.
func RandomKey(random io.Reader) (string, error) {
	var key [16]byte
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return "", fmt.Errorf("stock: random key: %w", err)
	}
	return hex.EncodeToString(key[:]), nil
}

// SaleOf returns the sale that a purchase ID belongs to, and whether the ID has
// the form that PurchaseID makes.
func SaleOf(purchaseID string) (saleID string, ok bool) {
	// A sale ID has no dot in it, so the first one ends it.
	saleID, digest, found := strings.Cut(purchaseID, ".")
	if !found || !ValidID(saleID) || !digestPattern.MatchString(digest) {
		return "", false
	}
	return saleID, true
}
