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
	text := make([]byte, 0, 3*8+2*64+MaxKey)
	for _, part := range [...]string{saleID, userID, idempotencyKey} {
		// Each part is preceded by its length: ("ab", "c") is not ("a", "bc").
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	hash := sha256.Sum256(text)
	id := make([]byte, 0, 64+1+26)
	return string(idEncoding.AppendEncode(append(append(id, saleID...), '.'), hash[:16]))
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
