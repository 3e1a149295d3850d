// Package conformance holds `ordo serve` against the official Go client.
//
// ORDO_PROGRAM names the program. One server serves all tests; what they make has names of its own.
package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

const patience = time.Minute // Far more than anything takes.

// Server is `ordo serve` as a child.
type Server struct {
	port      int
	directory string
	options   []string
	child     *exec.Cmd
}

var server *Server

func TestMain(m *testing.M) {
	server = startServer()
	os.Setenv("PUBSUB_EMULATOR_HOST", server.address())
	status := m.Run()
	if err := server.stop(); err != nil {
		log.Printf("the server did not end well: %v", err)
		status = 1
	}
	os.Exit(status)
}

// A port below those that the kernel gives to clients: a client that tries again and again to reach a
// server that is down may be given its port, and then talks to itself.
func freePort() int {
	for {
		port := 10_000 + rand.IntN(20_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			listener.Close()
			return port
		}
	}
}

func startServer(options ...string) *Server {
	directory, err := os.MkdirTemp("", "ordo-conformance-")
	if err != nil {
		log.Fatal(err)
	}
	started := &Server{port: freePort(), directory: directory, options: options}
	started.run()
	return started
}

func (s *Server) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *Server) run() {
	words := append([]string{"serve", "--listen", s.address(), "--data",
		filepath.Join(s.directory, "data"), "--min-ack-deadline", "1s"}, s.options...)
	s.child = exec.Command(os.Getenv("ORDO_PROGRAM"), words...)
	s.child.Stderr = os.Stderr
	output, err := s.child.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := s.child.Start(); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "PUBSUB_EMULATOR_HOST") {
			return
		}
	}
	log.Fatal("the server did not start")
}

// crash ends it without a word, and starts it again on the same port and data.
func (s *Server) crash() {
	s.child.Process.Kill()
	s.child.Wait()
	s.run()
}

func (s *Server) stop() error {
	s.child.Process.Signal(syscall.SIGTERM)
	err := s.child.Wait()
	os.RemoveAll(s.directory)
	return err
}

// metrics is the page /metrics.
func (s *Server) metrics(t *testing.T) string {
	t.Helper()
	response, err := http.Get("http://" + s.address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// metric is the value of a line of /metrics, as text; "" when there is none.
func (s *Server) metric(t *testing.T, name string) string {
	t.Helper()
	for _, line := range strings.Split(s.metrics(t), "\n") {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return value
		}
	}
	return ""
}

// Rig is a client, and topics and subscriptions that go with the test.
type Rig struct {
	*testing.T
	ctx    context.Context
	client *pubsub.Client
}

func newRig(t *testing.T) *Rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	client, err := pubsub.NewClient(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(server.metrics(t))
		}
		client.Close()
		cancel()
	})
	return &Rig{t, ctx, client}
}

var serial atomic.Int64

func unique(kind string) string {
	return fmt.Sprintf("projects/test/%ss/%s-%d", kind, kind, serial.Add(1))
}

func (r *Rig) topic() string {
	r.Helper()
	name := unique("topic")
	if _, err := r.client.TopicAdminClient.CreateTopic(r.ctx, &pubsubpb.Topic{Name: name}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		r.client.TopicAdminClient.DeleteTopic(r.ctx, &pubsubpb.DeleteTopicRequest{Topic: name})
	})
	return name
}

// subscription is ordered; `settings` may say otherwise.
func (r *Rig) subscription(topic string, settings ...func(*pubsubpb.Subscription)) string {
	r.Helper()
	wanted := &pubsubpb.Subscription{Name: unique("subscription"), Topic: topic, EnableMessageOrdering: true}
	for _, set := range settings {
		set(wanted)
	}
	if _, err := r.client.SubscriptionAdminClient.CreateSubscription(r.ctx, wanted); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		r.client.SubscriptionAdminClient.DeleteSubscription(
			r.ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: wanted.Name})
	})
	return wanted.Name
}

func (r *Rig) pair(settings ...func(*pubsubpb.Subscription)) (*pubsub.Publisher, string) {
	r.Helper()
	topic := r.topic()
	return r.publisher(topic), r.subscription(topic, settings...)
}

func (r *Rig) publisher(topic string) *pubsub.Publisher {
	publisher := r.client.Publisher(topic)
	publisher.EnableMessageOrdering = true
	r.Cleanup(publisher.Stop)
	return publisher
}

// publish waits until all are stored, and returns their ids.
func (r *Rig) publish(publisher *pubsub.Publisher, key string, texts ...string) []string {
	r.Helper()
	var results []*pubsub.PublishResult
	for _, text := range texts {
		results = append(results, publisher.Publish(r.ctx, &pubsub.Message{Data: []byte(text), OrderingKey: key}))
	}
	var ids []string
	for _, result := range results {
		id, err := result.Get(r.ctx)
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// receive calls `handle` until the test ends, or the returned function was called.
func (r *Rig) receive(subscription string, handle func(*pubsub.Message),
	settings ...func(*pubsub.ReceiveSettings)) (stop func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	subscriber := r.client.Subscriber(subscription)
	for _, set := range settings {
		set(&subscriber.ReceiveSettings)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := subscriber.Receive(ctx, func(_ context.Context, message *pubsub.Message) { handle(message) })
		if err != nil && ctx.Err() == nil {
			r.Errorf("%s: %v", subscription, err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	r.Cleanup(stop)
	return stop
}

// collect acknowledges all that comes, and gives its texts.
func (r *Rig) collect(subscription string) <-chan string {
	r.Helper()
	inbox := make(chan string, 1000)
	r.receive(subscription, func(message *pubsub.Message) {
		inbox <- string(message.Data)
		message.Ack()
	})
	return inbox
}

// expect takes one of `inbox` for each of `texts`, in their order.
func (r *Rig) expect(inbox <-chan string, texts ...string) {
	r.Helper()
	for index, want := range texts {
		select {
		case got := <-inbox:
			if got != want {
				r.Fatalf("message %d is %q; wanted %q", index, got, want)
			}
		case <-time.After(patience):
			r.Fatalf("never: message %d, %q", index, want)
		}
	}
}

func (r *Rig) eventually(what string, condition func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("never: %s", what)
		}
	}
}

// pull waits for messages as one call.
func (r *Rig) pull(subscription string) []*pubsubpb.ReceivedMessage {
	r.Helper()
	response, err := r.client.SubscriptionAdminClient.Pull(
		r.ctx, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: 10})
	if err != nil {
		r.Fatal(err)
	}
	return response.ReceivedMessages
}

// pullOne is for when there can be one only.
func (r *Rig) pullOne(subscription, want string) *pubsubpb.ReceivedMessage {
	r.Helper()
	received := r.pull(subscription)
	if len(received) != 1 || string(received[0].Message.Data) != want {
		r.Fatalf("got %v; wanted %q alone", received, want)
	}
	return received[0]
}

func (r *Rig) acknowledge(subscription string, received *pubsubpb.ReceivedMessage) error {
	return r.client.SubscriptionAdminClient.Acknowledge(
		r.ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: []string{received.AckId}})
}
