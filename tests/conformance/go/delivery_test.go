package conformance

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func expectCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	var detailed *apierror.APIError
	got := status.Code(err)
	if errors.As(err, &detailed) {
		got = detailed.GRPCStatus().Code()
	}
	if got != want {
		t.Errorf("%s: %v; wanted %v", what, err, want)
	}
}

func TestAMessageComesAsItWasPublished(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	attributes := map[string]string{"colour": "blue", "empty": ""}
	result := publisher.Publish(r.ctx, &pubsub.Message{
		Data: []byte("grüße"), Attributes: attributes, OrderingKey: "k"})
	id, err := result.Get(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *pubsub.Message, 1)
	r.receive(subscription, func(message *pubsub.Message) {
		message.Ack()
		got <- message
	})
	message := <-got
	if message.ID != id || message.OrderingKey != "k" || !reflect.DeepEqual(message.Attributes, attributes) {
		t.Errorf("got %+v", message)
	}
	if age := time.Since(message.PublishTime); age < -patience || age > patience {
		t.Errorf("it was published %v ago", age)
	}
	if message.DeliveryAttempt != nil {
		t.Errorf("attempt %d without a dead-letter policy", *message.DeliveryAttempt)
	}
}

func TestMessagesOfAlmostTenMegabytesAndOfAttributesAlone(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	data := bytes.Repeat([]byte("x"), 9_990_000)
	for _, message := range []*pubsub.Message{
		{Data: data, OrderingKey: "k"},
		{Attributes: map[string]string{"colour": "blue"}, OrderingKey: "k"},
	} {
		if _, err := publisher.Publish(r.ctx, message).Get(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	r.expect(r.collect(subscription), string(data), "")
}

func TestNoMoreMessagesAreOutstandingThanTheClientWants(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	var active, most atomic.Int32
	inbox := make(chan string, 20)
	r.receive(subscription, func(message *pubsub.Message) {
		if now := active.Add(1); now > most.Load() {
			most.Store(now)
		}
		time.Sleep(10 * time.Millisecond)
		active.Add(-1)
		message.Ack()
		inbox <- ""
	}, func(settings *pubsub.ReceiveSettings) { settings.MaxOutstandingMessages = 3 })
	for index := range 20 {
		r.publish(publisher, "", strconv.Itoa(index))
	}
	for range 20 {
		r.expect(inbox, "")
	}
	if most.Load() > 3 {
		t.Errorf("%d were outstanding", most.Load())
	}
}

func TestAFilterLetsThroughWhatItNames(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(func(s *pubsubpb.Subscription) {
		s.Filter = `hasPrefix(attributes.colour, "bl") AND attributes.old != "yes"`
	})
	for _, one := range []struct{ text, colour, old string }{
		{"1", "red", ""}, {"2", "blue", ""}, {"3", "black", "yes"}, {"4", "black", "no"}} {
		result := publisher.Publish(r.ctx, &pubsub.Message{Data: []byte(one.text), OrderingKey: "k",
			Attributes: map[string]string{"colour": one.colour, "old": one.old}})
		if _, err := result.Get(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	r.publish(publisher, "k", "never: no colour")
	r.expect(r.collect(subscription), "2", "4")
}

func TestANackedMessageComesAgainAfterItsBackOffAndBeforeItsSuccessor(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(func(s *pubsubpb.Subscription) {
		s.RetryPolicy = &pubsubpb.RetryPolicy{
			MinimumBackoff: durationpb.New(time.Second), MaximumBackoff: durationpb.New(2 * time.Second)}
	})
	inbox := make(chan string, 10)
	var nacked atomic.Pointer[time.Time]
	r.receive(subscription, func(message *pubsub.Message) {
		if nacked.Load() == nil {
			now := time.Now()
			nacked.Store(&now)
			message.Nack()
		} else {
			if string(message.Data) == "first" && time.Since(*nacked.Load()) < 900*time.Millisecond {
				t.Errorf("again after %v", time.Since(*nacked.Load()))
			}
			message.Ack()
		}
		inbox <- string(message.Data)
	})
	r.publish(publisher, "k", "first", "second")
	r.expect(inbox, "first", "first", "second")
}

func TestADeadLetterComesAfterFiveAttemptsWithItsKeyAndItsOrigin(t *testing.T) {
	r := newRig(t)
	dead := r.topic()
	letters := r.subscription(dead)
	publisher, subscription := r.pair(func(s *pubsubpb.Subscription) {
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: dead, MaxDeliveryAttempts: 5}
	})
	inbox := make(chan string, 10)
	var attempts []int
	r.receive(subscription, func(message *pubsub.Message) {
		if string(message.Data) == "poison" {
			attempts = append(attempts, *message.DeliveryAttempt)
			message.Nack()
			return
		}
		message.Ack()
		inbox <- string(message.Data)
	})
	r.publish(publisher, "k", "poison", "behind it")
	letter := r.pullOne(letters, "poison").Message
	r.expect(inbox, "behind it")
	if !reflect.DeepEqual(attempts, []int{1, 2, 3, 4, 5}) {
		t.Errorf("attempts %v", attempts)
	}
	if letter.OrderingKey != "k" || letter.Attributes["CloudPubSubDeadLetterSourceDeliveryCount"] != "5" ||
		!strings.HasSuffix(subscription, "/"+letter.Attributes["CloudPubSubDeadLetterSourceSubscription"]) {
		t.Errorf("the letter is %v", letter)
	}
}

func exactlyOnce(s *pubsubpb.Subscription) {
	s.EnableExactlyOnceDelivery = true
	s.AckDeadlineSeconds = 1
}

func TestExactlyOnceTellsWhetherAnAckCounted(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(exactlyOnce)
	answers := make(chan pubsub.AcknowledgeStatus, 10)
	var count atomic.Int32
	r.receive(subscription, func(message *pubsub.Message) {
		settle := message.AckWithResult
		if count.Add(1) == 1 {
			settle = message.NackWithResult
		}
		answer, err := settle().Get(r.ctx)
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	})
	r.publish(publisher, "k", "once")
	for range 2 {
		if answer := <-answers; answer != pubsub.AcknowledgeStatusSuccess {
			t.Errorf("answered %v", answer)
		}
	}
}

func TestExactlyOnceRefusesTheAckOfAnOlderDeliveryAndSaysWhich(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(exactlyOnce)
	r.publish(publisher, "k", "once")
	old := r.pullOne(subscription, "once")
	r.pullOne(subscription, "once")
	err := r.acknowledge(subscription, old)
	expectCode(t, "the older one", err, codes.InvalidArgument)
	var detailed *apierror.APIError
	if !errors.As(err, &detailed) || detailed.Reason() != "EXACTLY_ONCE_ACKID_FAILURE" ||
		detailed.Metadata()[old.AckId] != "PERMANENT_FAILURE_INVALID_ACK_ID" {
		t.Errorf("its details: %v", err)
	}
}

func TestASeekBringsBackWhatWasAcknowledged(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair(func(s *pubsubpb.Subscription) { s.RetainAckedMessages = true })
	snapshot := unique("snapshot")
	if _, err := r.client.SubscriptionAdminClient.CreateSnapshot(r.ctx,
		&pubsubpb.CreateSnapshotRequest{Name: snapshot, Subscription: subscription}); err != nil {
		t.Fatal(err)
	}
	r.publish(publisher, "k", "1", "2")
	times := make(chan time.Time, 100)
	inbox := make(chan string, 100)
	r.receive(subscription, func(message *pubsub.Message) {
		times <- message.PublishTime
		inbox <- string(message.Data)
		message.Ack()
	})
	r.expect(inbox, "1", "2")
	first := <-times
	for _, seek := range []*pubsubpb.SeekRequest{
		{Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(first)}},
		{Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: snapshot}},
	} {
		seek.Subscription = subscription
		if _, err := r.client.SubscriptionAdminClient.Seek(r.ctx, seek); err != nil {
			t.Fatal(err)
		}
		// What was out when the seek came may come once more before it.
		for got := ""; got != "1"; {
			got = <-inbox
		}
		r.expect(inbox, "2")
	}
	if err := r.client.SubscriptionAdminClient.DeleteSnapshot(
		r.ctx, &pubsubpb.DeleteSnapshotRequest{Snapshot: snapshot}); err != nil {
		t.Fatal(err)
	}
}

func TestReceiveEndsWhenItsSubscriptionIsDeleted(t *testing.T) {
	r := newRig(t)
	publisher, subscription := r.pair()
	r.publish(publisher, "", "here")
	var once sync.Once
	err := r.client.Subscriber(subscription).Receive(r.ctx, func(_ context.Context, message *pubsub.Message) {
		message.Ack()
		once.Do(func() {
			if err := r.client.SubscriptionAdminClient.DeleteSubscription(r.ctx,
				&pubsubpb.DeleteSubscriptionRequest{Subscription: subscription}); err != nil {
				t.Error(err)
			}
		})
	})
	expectCode(t, "Receive", err, codes.NotFound)
}
