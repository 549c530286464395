package redislock

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers"
)

// functionServer is a Redis with functions, or the test is skipped.
func functionServer(t *testing.T) (addr string, client *redis.Client) {
	t.Helper()
	addr = realRedis(t)
	client = connect(t, addr)
	if !hasFunctions(t, client) {
		t.Skip("this server has no functions")
	}
	return addr, client
}

// Programs of two versions share a server: neither may find the other's
// functions under its own names.
func TestLibraryChangesUnderTheSameVersion(t *testing.T) {
	const version, sum = 2, "aebced3165f48bac5917079ff5bafadc89f2a8633affdf2ad9d1760c4bb5401f"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(librarySource()))); libraryVersion == version && got != sum {
		t.Errorf("the scripts have changed (%s): raise libraryVersion", got)
	}
}

func TestUpgradeLeavesOldLibrariesBehind(t *testing.T) {
	addr, client := functionServer(t)
	for _, name := range []string{libraries + "0", libraries + "99", "another"} {
		source := fmt.Sprintf("#!lua name=%s\nredis.register_function('%s_f', function() return 1 end)", name, name)
		if err := client.FunctionLoad(t.Context(), source).Err(); err != nil {
			t.Fatal(err)
		}
	}
	lease := acquire(t, buildFunction(t, connect(t, addr), Options{}))
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	there, err := client.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range there {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	if want := []string{"another", library, libraries + "99"}; !slices.Equal(names, want) {
		t.Errorf("libraries %q, want %q: the older one replaced, others left alone", names, want)
	}
}

func TestServerWithoutFunctionsLooksLikeContention(t *testing.T) {
	_, err := buildFunction(t, connect(t, miniRedis(t)), Options{}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		t.Errorf("%v hides its cause", err)
	}
}

// comparing plays a server that deletes what it compares in one command.
type comparing struct {
	knows, answers string // what COMMAND INFO says it knows, and what it does
	sent           []string
}

func (c *comparing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := strings.ToUpper(cmd.Name())
		switch name {
		case "COMMAND":
			c.sent = append(c.sent, name)
			known := make([]any, 2)
			if i := slices.Index([]string{"DELEX", "DELIFEQ"}, c.knows); i >= 0 {
				known[i] = []any{c.knows}
			}
			cmd.(*redis.Cmd).SetVal(known)
			return nil
		case "DELEX", "DELIFEQ":
			c.sent = append(c.sent, name)
			if name != c.answers {
				return next(ctx, cmd) // an error: the server behind it is too old
			}
			args := cmd.Args()
			script := redis.NewCmd(ctx, "EVAL", releaseSource, 1, args[1], args[len(args)-1], "")
			err := next(ctx, script)
			cmd.(*redis.Cmd).SetVal(script.Val())
			cmd.SetErr(err)
			return err
		}
		if role(cmd) == releaseScript {
			c.sent = append(c.sent, "script")
		}
		return next(ctx, cmd)
	}
}

func (*comparing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*comparing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestReleaseUsesAScriptWhereOneCommandWouldDo(t *testing.T) {
	addr, undisturbed := functionServer(t)
	if known := undisturbed.Do(t.Context(), "COMMAND", "INFO", "DELEX", "DELIFEQ").Val(); !slices.Equal(known.([]any), []any{nil, nil}) {
		t.Skip("this server knows one itself")
	}
	tests := []struct {
		knows, answers string
		want           []string // of two releases
	}{
		{"DELEX", "DELEX", []string{"COMMAND", "DELEX", "DELEX"}},
		{"DELIFEQ", "DELIFEQ", []string{"COMMAND", "DELIFEQ", "DELIFEQ"}},
		{"", "", []string{"COMMAND", "script", "script"}},
		{"DELEX", "", []string{"COMMAND", "DELEX", "script", "script"}}, // an older server has taken over
	}
	for _, test := range tests {
		for name, build := range map[string]func(testing.TB, *redis.Client, Options) lock.Locker{"setnx": buildSetNX, "function": buildFunction} {
			t.Run(fmt.Sprintf("%s knows %q has %q", name, test.knows, test.answers), func(t *testing.T) {
				client, _ := flake(t, addr, nil, nil)
				hook := &comparing{knows: test.knows, answers: test.answers}
				client.AddHook(hook)
				locker := build(t, client, Options{})
				for range 2 {
					if err := acquire(t, locker).Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if !slices.Equal(hook.sent, test.want) {
					t.Errorf("sent %q, want %q", hook.sent, test.want)
				}
				lease := acquire(t, locker)
				undisturbed.Set(t.Context(), lockKey, "another", time.Minute)
				locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
				if undisturbed.Del(t.Context(), lockKey).Val() != 1 {
					t.Error("another's lock was deleted")
				}
			})
		}
	}
}

// With a server that really has such a command.
func TestValkeyConforms(t *testing.T) {
	binary, err := exec.LookPath("valkey-server")
	if err != nil {
		t.Skip("needs valkey-server 9 in PATH")
	}
	server := servers.RedisBinary(t.TempDir(), binary)
	start(t, server)
	t.Cleanup(server.Kill)
	client := connect(t, server.Addr())
	if client.Do(t.Context(), "COMMAND", "INFO", "DELIFEQ").Val().([]any)[0] == nil {
		t.Skip("needs valkey-server 9")
	}
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) { conforms(t, variant, server.Addr()) })
	}
	if n := calls(t, client, "delifeq"); n < 100 {
		t.Errorf("DELIFEQ was called %d times", n)
	}
}

// calls is how often a server has run a command.
func calls(t *testing.T, client *redis.Client, command string) (n int) {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	_, _ = fmt.Sscanf(rest, "%d", &n) // 0 when it isn't listed
	return n
}
