package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// The integration tests that come with the client. Left out, with the reason: docs/conformance.md.
var published = []string{
	"CancelReceive",
	"ExactlyOnceDelivery_PublishReceive",
	"LargePublishSize",
	"OrderedKeys_Basic",
	"OrderedKeys_JSON",
	"OrderedKeys_ResumePublish",
	"OrderedKeys_SubscriptionOrdering",
	"OrderingWithExactlyOnce",
	"PublicTopic",
	"PublishCompression",
	"PublishReceive",
}

// ORDO_PUBLISHED_TESTS is the folder of the client's package, with its tests compiled to published.test.
// They run against a server that lets 100 messages of a key be in flight, as the service does: with one,
// 2,000 messages of a few keys take this client minutes, since it acknowledges every 100 ms.
func TestPublished(t *testing.T) {
	folder := os.Getenv("ORDO_PUBLISHED_TESTS")
	if folder == "" {
		t.Skip("ORDO_PUBLISHED_TESTS is not set")
	}
	wide := startServer("--ordered-window", "100")
	defer func() {
		if err := wide.stop(); err != nil {
			t.Error(err)
		}
	}()
	key := filepath.Join(t.TempDir(), "key.json")
	text := `{"type": "service_account", "client_email": "test@example.com", "private_key": "none"}`
	if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GCLOUD_TESTS_GOLANG_KEY", key)
	t.Setenv("GCLOUD_TESTS_GOLANG_PROJECT_ID", "test")
	t.Setenv("PUBSUB_EMULATOR_HOST", wide.address())
	makePublicTopic(t)
	t.Run("group", func(t *testing.T) {
		for _, name := range published {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test := exec.Command(filepath.Join(folder, "published.test"),
					"-test.v", "-test.run", "^TestIntegration_"+name+"$", "-test.timeout", "3m")
				test.Dir = folder
				output, err := test.CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, output)
				}
			})
		}
	})
}

// One of the tests subscribes to a topic that everybody can find at the service.
func makePublicTopic(t *testing.T) {
	client, err := pubsub.NewClient(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic := &pubsubpb.Topic{Name: "projects/pubsub-public-data/topics/taxirides-realtime"}
	if _, err := client.TopicAdminClient.CreateTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
}
