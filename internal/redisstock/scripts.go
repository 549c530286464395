package redisstock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed state.lua
	stateLua string
	//go:embed hashes.lua
	hashesLua string
	//go:embed preload.lua
	preloadLua string
	//go:embed snapshot.lua
	snapshotLua string
	//go:embed close.lua
	closeLua string
	//go:embed guarded_read.lua
	guardedReadLua string
	//go:embed guarded_write.lua
	guardedWriteLua string
	//go:embed atomic.lua
	atomicLua string
	//go:embed striped_read.lua
	stripedReadLua string
	//go:embed striped_write.lua
	stripedWriteLua string
)

var (
	preloadScript      = newScript(preloadLua)
	snapshotScript     = newScript(stateLua + snapshotLua)
	closeScript        = newScript(closeLua)
	guardedReadScript  = newScript(stateLua + hashesLua + guardedReadLua)
	guardedWriteScript = newScript(stateLua + hashesLua + guardedWriteLua)
	atomicScript       = newScript(stateLua + atomicLua)
	stripedReadScript  = newScript(stateLua + stripedReadLua)
	stripedWriteScript = newScript(stateLua + stripedWriteLua)
)

// script knows its text, which a lease may need; see firstOf and lastOf.
type script struct {
	*redis.Script
	text string
}

func newScript(text string) *script { return &script{redis.NewScript(text), text} }
