package redisstock

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed state.lua
	stateLua string
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
	preloadScript      = redis.NewScript(preloadLua)
	snapshotScript     = redis.NewScript(stateLua + snapshotLua)
	closeScript        = redis.NewScript(closeLua)
	guardedReadScript  = redis.NewScript(stateLua + guardedReadLua)
	guardedWriteScript = redis.NewScript(stateLua + guardedWriteLua)
	atomicScript       = redis.NewScript(stateLua + atomicLua)
	stripedReadScript  = redis.NewScript(stateLua + stripedReadLua)
	stripedWriteScript = redis.NewScript(stateLua + stripedWriteLua)
)
