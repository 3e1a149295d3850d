package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

func TestAMaskChangesWhatItNamesAndNothingElse(t *testing.T) {
	r := newRig(t)
	_, name := r.pair(func(s *pubsubpb.Subscription) { s.Labels = map[string]string{"team": "blue"} })
	admin := r.client.SubscriptionAdminClient
	changed, err := admin.UpdateSubscription(r.ctx, &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: name, AckDeadlineSeconds: 33,
			Labels: map[string]string{"team": "red"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"ack_deadline_seconds"}}})
	if err != nil {
		t.Fatal(err)
	}
	if changed.AckDeadlineSeconds != 33 || changed.Labels["team"] != "blue" ||
		changed.MessageRetentionDuration.AsDuration() != 7*24*time.Hour ||
		changed.ExpirationPolicy.Ttl.AsDuration() != 31*24*time.Hour {
		t.Errorf("it is %v now", changed)
	}
	kept, err := admin.GetSubscription(r.ctx, &pubsubpb.GetSubscriptionRequest{Subscription: name})
	if err != nil || !proto.Equal(kept, changed) {
		t.Errorf("kept %v: %v", kept, err)
	}
	for _, paths := range [][]string{nil, {"topic"}, {"filter"}, {"enable_message_ordering"}, {"nonsense"}} {
		_, err := admin.UpdateSubscription(r.ctx, &pubsubpb.UpdateSubscriptionRequest{
			Subscription: &pubsubpb.Subscription{Name: name},
			UpdateMask:   &fieldmaskpb.FieldMask{Paths: paths}})
		expectCode(t, fmt.Sprint("the mask ", paths), err, codes.InvalidArgument)
	}
}

func TestListsComeInPages(t *testing.T) {
	r := newRig(t)
	project := fmt.Sprintf("projects/pages-%d", serial.Add(1))
	var want []string
	for index := range 5 {
		name := fmt.Sprintf("%s/topics/topic-%d", project, index)
		want = append(want, name)
		if _, err := r.client.TopicAdminClient.CreateTopic(r.ctx, &pubsubpb.Topic{Name: name}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			r.client.TopicAdminClient.DeleteTopic(r.ctx, &pubsubpb.DeleteTopicRequest{Topic: name})
		})
	}
	topics := r.client.TopicAdminClient.ListTopics(r.ctx, &pubsubpb.ListTopicsRequest{Project: project})
	pager := iterator.NewPager(topics, 2, "")
	var got []string
	var sizes []int
	for token := "first"; token != ""; {
		var page []*pubsubpb.Topic
		var err error
		if token, err = pager.NextPage(&page); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page))
		for _, topic := range page {
			got = append(got, topic.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{2, 2, 1}) {
		t.Errorf("pages of %v: %v", sizes, got)
	}
}

func TestWhatDoesNotExistOrExistsAlreadyIsSaidSo(t *testing.T) {
	r := newRig(t)
	topic := r.topic()
	subscription := r.subscription(topic)
	_, err := r.client.TopicAdminClient.CreateTopic(r.ctx, &pubsubpb.Topic{Name: topic})
	expectCode(t, "the topic again", err, codes.AlreadyExists)
	_, err = r.client.SubscriptionAdminClient.CreateSubscription(
		r.ctx, &pubsubpb.Subscription{Name: subscription, Topic: topic})
	expectCode(t, "the subscription again", err, codes.AlreadyExists)
	_, err = r.client.SubscriptionAdminClient.CreateSubscription(
		r.ctx, &pubsubpb.Subscription{Name: unique("subscription"), Topic: unique("topic")})
	expectCode(t, "a subscription of no topic", err, codes.NotFound)
	err = r.client.TopicAdminClient.DeleteTopic(r.ctx, &pubsubpb.DeleteTopicRequest{Topic: unique("topic")})
	expectCode(t, "deleting no topic", err, codes.NotFound)
	err = r.client.Subscriber(unique("subscription")).Receive(r.ctx, nil)
	expectCode(t, "receiving from no subscription", err, codes.NotFound)
}

func TestSettingsOutOfBoundsAreRefused(t *testing.T) {
	r := newRig(t)
	topic := r.topic()
	for _, settings := range []*pubsubpb.Subscription{
		{AckDeadlineSeconds: 601},
		{AckDeadlineSeconds: -1},
		{MessageRetentionDuration: durationpb.New(time.Minute)},
		{ExpirationPolicy: &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(time.Hour)}},
		{RetryPolicy: &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(601 * time.Second)}},
		{Filter: "nonsense("},
		{Filter: strings.Repeat("x", 257)},
	} {
		settings.Name, settings.Topic = unique("subscription"), topic
		_, err := r.client.SubscriptionAdminClient.CreateSubscription(r.ctx, settings)
		expectCode(t, settings.String(), err, codes.InvalidArgument)
	}
}

func TestRequestsOutOfBoundsAreRefusedAndNothingOfThemIsStored(t *testing.T) {
	r := newRig(t)
	topic := r.topic()
	subscription := r.subscription(topic)
	one := &pubsubpb.PubsubMessage{Data: []byte("x")}
	for what, messages := range map[string][]*pubsubpb.PubsubMessage{
		"none":          {},
		"empty":         {{}},
		"mixed keys":    {{Data: one.Data, OrderingKey: "a"}, {Data: one.Data, OrderingKey: "b"}},
		"reserved name": {{Attributes: map[string]string{"goog-mine": ""}}},
		"long value":    {{Attributes: map[string]string{"long": strings.Repeat("v", 1025)}}},
		"1,001":         slices.Repeat([]*pubsubpb.PubsubMessage{one}, 1001),
		"over 10 MB":    {{Data: make([]byte, 10_000_001)}},
	} {
		_, err := r.client.TopicAdminClient.Publish(
			r.ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: messages})
		expectCode(t, what, err, codes.InvalidArgument)
	}
	r.publish(r.publisher(topic), "", "the next")
	r.pullOne(subscription, "the next")
}

func TestASubscriptionOutlivesItsTopicAndADetachedOneRefusesToBePulled(t *testing.T) {
	r := newRig(t)
	publisher, name := r.pair()
	r.publish(publisher, "", "kept")
	if err := r.client.TopicAdminClient.DeleteTopic(
		r.ctx, &pubsubpb.DeleteTopicRequest{Topic: publisher.String()}); err != nil {
		t.Fatal(err)
	}
	kept, err := r.client.SubscriptionAdminClient.GetSubscription(
		r.ctx, &pubsubpb.GetSubscriptionRequest{Subscription: name})
	if err != nil || kept.Topic != "_deleted-topic_" {
		t.Fatalf("%v: %v", kept, err)
	}
	r.pullOne(name, "kept")
	if _, err := r.client.TopicAdminClient.DetachSubscription(
		r.ctx, &pubsubpb.DetachSubscriptionRequest{Subscription: name}); err != nil {
		t.Fatal(err)
	}
	_, err = r.client.SubscriptionAdminClient.Pull(
		r.ctx, &pubsubpb.PullRequest{Subscription: name, MaxMessages: 1})
	expectCode(t, "a pull", err, codes.FailedPrecondition)
}

func TestAPolicyIsKeptAndEveryPermissionGranted(t *testing.T) {
	r := newRig(t)
	topic := r.topic()
	admin := r.client.TopicAdminClient
	policy := &iampb.Policy{Bindings: []*iampb.Binding{
		{Role: "roles/pubsub.viewer", Members: []string{"user:somebody@example.com"}}}}
	_, setError := admin.SetIamPolicy(r.ctx, &iampb.SetIamPolicyRequest{Resource: topic, Policy: policy})
	kept, getError := admin.GetIamPolicy(r.ctx, &iampb.GetIamPolicyRequest{Resource: topic})
	if err := errors.Join(setError, getError); err != nil {
		t.Fatal(err)
	}
	if len(kept.Bindings) != 1 || !proto.Equal(kept.Bindings[0], policy.Bindings[0]) {
		t.Errorf("kept %v", kept)
	}
	asked := []string{"pubsub.topics.publish", "pubsub.topics.delete"}
	granted, err := admin.TestIamPermissions(
		r.ctx, &iampb.TestIamPermissionsRequest{Resource: topic, Permissions: asked})
	if err != nil || !slices.Equal(granted.Permissions, asked) {
		t.Errorf("granted %v: %v", granted, err)
	}
}
