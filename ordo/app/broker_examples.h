// The examples and exit statuses at the end of the help of the commands that talk to a broker.
#pragma once

namespace ordo::app {

inline constexpr const char* kTopicsExamples = R"(
Names may be whole (projects/shop/topics/orders) or short (orders): then the project is --project,
else ORDO_CLIENT_PROJECT, PUBSUB_PROJECT_ID or GOOGLE_CLOUD_PROJECT, else 'project' in the table
[client] of ordo.toml, else 'ordo'. The broker is --host, else ORDO_CLIENT_HOST or
PUBSUB_EMULATOR_HOST, else 'host' there, else 127.0.0.1:8085.

Examples:
  ordo topics create orders payments --label team=a
  ordo topics update orders --retention 1d
      keep messages a day, also when all have acknowledged them: 'ordo seek' can bring them back
  ordo topics list --json

Exit status:
  0  done      1  refused, with the reason      2  no broker, or it was lost      255  wrong usage
)";

inline constexpr const char* kSubscriptionsExamples = R"(
Whole and short names, the project and the broker: see 'ordo topics create --help'. A switch can be
turned off again: --exactly-once=false.

Examples:
  ordo subscriptions create billing --topic orders --ordered --ack-deadline 30s
  ordo subscriptions create audit --topic orders --filter 'attributes.kind = "refund"' \
      --dead-letter-topic dead --max-delivery-attempts 7 --min-retry-delay 1s
      only refunds; what fails seven times goes to the topic 'dead'
  ordo subscriptions update billing --window 100 --clear-dead-letter-policy
      up to 100 messages of a key in flight; a failed one takes those behind it back

Exit status:
  0  done      1  refused, with the reason      2  no broker, or it was lost      255  wrong usage
)";

inline constexpr const char* kSnapshotsExamples = R"(
A snapshot keeps which messages of a subscription are not acknowledged; it ends after a week at
the latest. Whole and short names, the project and the broker: see 'ordo topics create --help'.

Examples:
  ordo snapshots create before-release --subscription billing
  ordo seek billing --snapshot before-release
  ordo snapshots delete before-release

Exit status:
  0  done      1  refused, with the reason      2  no broker, or it was lost      255  wrong usage
)";

inline constexpr const char* kSeekExamples = R"(
What was published before the time counts as acknowledged, the rest does not. Messages that were
acknowledged come back only where they are kept: --retain-acked of the subscription, or --retention
of the topic. What is in flight is given out again, in order.

Examples:
  ordo seek billing --time -1h
      everything of the last hour again
  ordo seek billing --time now
      forget what waits
  ordo seek billing --snapshot before-release

Exit status:
  0  done      1  refused, with the reason      2  no broker, or it was lost      255  wrong usage
)";

inline constexpr const char* kPubExamples = R"(
Messages of a key are stored in the order of the lines, many to a request; what fails stops the
rest, so that nothing overtakes it. An empty key is an error, and so is an empty line without
--attr.

Examples:
  ordo pub orders 'hello' --key user-1 --attr kind=greeting
      prints the id of the message
  ordo pub orders --key-field user < events.jsonl
      {"user":"u1","total":3} has the key u1; progress is shown on a terminal
  tail -f access.log | ordo pub access
      a message for each line, as it comes

Exit status:
  0  all are stored      1  refused, with the line and the reason      2  no broker, or it was lost
  255  wrong usage
)";

inline constexpr const char* kSubExamples = R"(
Without --exec messages are printed: on a terminal a line for people, else (or with --json) a JSON
object a line, with --data the data alone. Without --ack they stay: each is kept from others while
this runs and given back at the end, and behind an ordered one nothing of its key comes.

With --exec CMD runs by sh for each message: those of a key one after the other, keys side by side
(--jobs). The data is its standard input; ORDO_KEY, ORDO_MESSAGE_ID, ORDO_SUBSCRIPTION,
ORDO_PUBLISH_TIME, ORDO_ATTEMPT and ORDO_ATTR_name say the rest. Exit 0 acknowledges, anything else
gives the message back, to come again before those behind it. Leases are extended while CMD runs.

SIGTERM and Ctrl-C take no more, finish what runs and give back the rest; a second one ends CMD. A
lost broker is looked for again.

Examples:
  ordo sub billing
      look at what is there, and leave it there
  ordo sub billing --ack --data --idle 5s > messages.txt
      take all there is, and end when nothing came for five seconds
  ordo sub billing --exec './charge.sh' --jobs 8
      eight keys at a time

Exit status:
  0  ended as asked      1  some CMD failed, or the broker refused      2  no broker
  255  wrong usage
)";

}  // namespace ordo::app
