package conformance

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

func TestThreeMessagesOfOneKeyArriveAsFirstSecondThird(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	inbox := r.collect(subscription)
	r.publish(publisher, "k", "first", "second", "third")
	r.expect(inbox, "first", "second", "third")
}

func TestFiveOfOneKeyWithASlowHandlerAreNeverTwoAtOnce(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	var active, most atomic.Int32
	inbox := make(chan string, 10)
	r.receive(subscription, func(message *pubsub.Message) {
		if now := active.Add(1); now > most.Load() {
			most.Store(now)
		}
		time.Sleep(50 * time.Millisecond)
		active.Add(-1)
		inbox <- string(message.Data)
		message.Ack()
	})
	r.publish(publisher, "k", "1", "2", "3", "4", "5")
	r.expect(inbox, "1", "2", "3", "4", "5")
	if most.Load() != 1 {
		t.Errorf("%d were handled at once", most.Load())
	}
}

func TestThreeKeysAreHandledAtOnce(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	var together sync.WaitGroup
	together.Add(3)
	done := make(chan string, 3)
	r.receive(subscription, func(message *pubsub.Message) {
		together.Done()
		together.Wait()
		message.Ack()
		done <- ""
	})
	for _, key := range []string{"a", "b", "c"} {
		r.publish(publisher, key, key)
	}
	r.expect(done, "", "", "")
}

func TestANackBringsTheFirstAgainBeforeTheSecond(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	r.publish(publisher, "k", "first", "second")
	inbox := make(chan string, 10)
	var count atomic.Int32
	r.receive(subscription, func(message *pubsub.Message) {
		inbox <- string(message.Data)
		if count.Add(1) == 1 {
			message.Nack()
		} else {
			message.Ack()
		}
	})
	r.expect(inbox, "first", "first", "second")
}

func TestADeadlineOfOneSecondThatPassesBringsTheFirstAgainThenTheSecond(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(func(s *pubsubpb.Subscription) { s.AckDeadlineSeconds = 1 })
	r.publish(publisher, "k", "first", "second")
	r.pullOne(subscription, "first")
	if err := r.acknowledge(subscription, r.pullOne(subscription, "first")); err != nil {
		t.Fatal(err)
	}
	r.pullOne(subscription, "second")
}

func TestABlockedKeyDoesNotHoldUpAMessageWithoutOne(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	release := make(chan struct{})
	inbox := make(chan string, 10)
	r.receive(subscription, func(message *pubsub.Message) {
		if message.OrderingKey != "" {
			<-release
		}
		inbox <- string(message.Data)
		message.Ack()
	})
	r.publish(publisher, "k", "blocked", "behind")
	r.publish(publisher, "", "free")
	r.expect(inbox, "free")
	close(release)
	r.expect(inbox, "blocked", "behind")
}

func TestTwoSubscriptionsGetEverythingInOrderEachByItself(t *testing.T) {
	r := newRig(t)
	topic := r.topic()
	inboxes := []<-chan string{r.collect(r.subscription(topic)), r.collect(r.subscription(topic))}
	r.publish(r.publisher(topic), "k", "1", "2", "3")
	for _, inbox := range inboxes {
		r.expect(inbox, "1", "2", "3")
	}
}

func TestTwentyMessagesOverFiveKeysThroughABatchingPublisher(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	publisher.PublishSettings.DelayThreshold = 100 * time.Millisecond
	ids := map[string]bool{}
	for _, result := range publishRounds(r, publisher, 4, 5) {
		id, err := result.Get(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	if len(ids) != 20 {
		t.Errorf("%d distinct ids", len(ids))
	}
	expectRounds(r, subscription, 4, 5)
}

// 100,000 keys by ORDO_CONFORMANCE_KEYS; fewer without, so that it takes seconds.
func TestManyKeysOfThreeMessagesEachArriveInOrderAndLeaveNothingBehind(t *testing.T) {
	keys, err := strconv.Atoi(os.Getenv("ORDO_CONFORMANCE_KEYS"))
	if err != nil {
		keys = 10_000
	}
	r := newRig(t)
	publisher, subscription := r.pair()
	publisher.PublishSettings.FlowControlSettings.MaxOutstandingMessages = 10_000
	publisher.PublishSettings.FlowControlSettings.LimitExceededBehavior = pubsub.FlowControlBlock
	start := time.Now()
	for _, result := range publishRounds(r, publisher, 3, keys) {
		if _, err := result.Get(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	published := time.Since(start)
	expectRounds(r, subscription, 3, keys)
	t.Logf("%d keys: published in %v, all after %v", keys, published, time.Since(start))
	for _, name := range []string{"keys", "backlog", "in_flight"} {
		metric := fmt.Sprintf("ordo_subscription_%s{subscription=%q}", name, subscription)
		r.eventually(metric+" 0", func() bool { return server.metric(t, metric) == "0" })
	}
}

// publishRounds publishes "0" of every key, then "1", and so on.
func publishRounds(r *Rig, publisher *pubsub.Publisher, rounds, keys int) []*pubsub.PublishResult {
	var results []*pubsub.PublishResult
	for round := range rounds {
		for key := range keys {
			results = append(results, publisher.Publish(r.ctx, &pubsub.Message{
				Data: []byte(strconv.Itoa(round)), OrderingKey: fmt.Sprintf("key-%d", key)}))
		}
	}
	return results
}

// expectRounds takes what publishRounds published: each once, in the order of its key.
func expectRounds(r *Rig, subscription string, rounds, keys int) {
	r.Helper()
	var mutex sync.Mutex
	next := map[string]int{}
	total := 0
	stop := r.receive(subscription, func(message *pubsub.Message) {
		mutex.Lock()
		defer mutex.Unlock()
		if want := strconv.Itoa(next[message.OrderingKey]); string(message.Data) != want {
			r.Errorf("%s: got %s; wanted %s", message.OrderingKey, message.Data, want)
		}
		next[message.OrderingKey]++
		total++
		message.Ack()
	}, func(settings *pubsub.ReceiveSettings) { settings.MaxOutstandingMessages = 20_000 })
	for last := -1; ; {
		mutex.Lock()
		now := total
		mutex.Unlock()
		if now >= rounds*keys {
			break
		}
		if now == last {
			r.Fatalf("%d of %d came", now, rounds*keys)
		}
		last = now
		for end := time.Now().Add(patience); now == last && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
			mutex.Lock()
			now = total
			mutex.Unlock()
		}
	}
	stop()
	if len(next) != keys {
		r.Errorf("%d keys; wanted %d", len(next), keys)
	}
}

func TestAKeyThatFailedIsPausedByTheClientUntilItIsResumed(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	for _, text := range []string{"", "refused"} {
		result := publisher.Publish(r.ctx, &pubsub.Message{Data: []byte(text), OrderingKey: "k"})
		if _, err := result.Get(r.ctx); err == nil {
			t.Fatalf("%q was published", text)
		}
	}
	publisher.ResumePublish("k")
	r.publish(publisher, "k", "after")
	r.expect(r.collect(subscription), "after")
}

func TestAKeyOf1024BytesPassesAndOneByteMoreIsRefused(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	key := strings.Repeat("é", 512)
	r.publish(publisher, key, "fits")
	if got := r.pullOne(subscription, "fits").Message.OrderingKey; got != key {
		t.Errorf("the key is %q", got)
	}
	result := publisher.Publish(r.ctx, &pubsub.Message{Data: []byte("x"), OrderingKey: key + "x"})
	_, err := result.Get(r.ctx)
	if err == nil || !strings.Contains(err.Error(), "1024 bytes") {
		t.Errorf("a key of 1,025 bytes: %v", err)
	}
}

func TestClientsGoOnByThemselvesAfterCrashesAndNothingIsLost(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	var mutex sync.Mutex
	got := map[string][]int{}
	seen := map[int]bool{}
	r.receive(subscription, func(message *pubsub.Message) {
		number, _ := strconv.Atoi(string(message.Data))
		mutex.Lock()
		if !seen[number] {
			seen[number] = true
			got[message.OrderingKey] = append(got[message.OrderingKey], number)
		}
		mutex.Unlock()
		message.Ack()
	})
	published := 0
	want := map[string][]int{}
	for range 2 {
		var results []*pubsub.PublishResult
		for range 50 {
			key := fmt.Sprintf("key-%d", published%5)
			want[key] = append(want[key], published)
			results = append(results, publisher.Publish(r.ctx, &pubsub.Message{
				Data: []byte(strconv.Itoa(published)), OrderingKey: key}))
			published++
		}
		server.crash()
		for _, result := range results {
			if _, err := result.Get(r.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.eventually("all of them", func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(seen) == published
	})
	mutex.Lock()
	defer mutex.Unlock()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; wanted %v", got, want)
	}
}
