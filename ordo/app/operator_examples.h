// The examples and exit statuses at the end of the help of the operators' commands.
#pragma once

namespace ordo::app {

inline constexpr const char* kKeysExamples = R"(
Lists keys that the subscription has come to, which it does while somebody consumes it. Stuck is a
key that is held, that failed, or whose head has been the head for a minute. Printed as JSON lines
with --json, and when standard output is no terminal.

Examples:
  ordo keys billing --blocked
      which keys do not go on, and why
  ordo keys billing --by deepest --top 5
      where most messages wait
  ordo keys billing --by hottest --json | jq .key
      which keys are busiest, also when nothing of them waits

Exit status:
  0  listed      1  refused by the broker      2  no broker there      255  wrong usage
)";

inline constexpr const char* kKeyExamples = R"(
Answered when what was done is on disk. A head that is in flight is neither skipped nor
dead-lettered: pause its key first, and do it when the delivery has ended.

Examples:
  ordo key skip billing user-7
      give up the message at the head of user-7; those behind it go on
  ordo key pause billing user-7
      deliver nothing more of user-7, until 'ordo key resume billing user-7'
  ordo key dead-letter billing user-7
      send the head to the dead-letter topic of the subscription, keep its place in order

Exit status:
  0  done      1  refused by the broker, which says why      2  no broker there
  255  wrong usage
)";

inline constexpr const char* kPeekExamples = R"(
Shows what is ready, in flight, waiting behind others of its key, and blocked, the oldest first.
Nothing is consumed. Printed as JSON lines with --json, and when standard output is no terminal.

Examples:
  ordo peek billing
      the twenty oldest messages that are not acknowledged
  ordo peek billing --key user-7 --top 3
      the next three of one key
  ordo peek billing --top all --json | jq -r .data
      everything

Exit status:
  0  shown      1  refused by the broker      2  no broker there      255  wrong usage
)";

inline constexpr const char* kTailExamples = R"(
Follows a topic from now on. Nothing is consumed, and no subscription is needed; who reads too
slowly is told how many were left out. In FORMAT %k is the ordering key, %d the data, %i the message
id, %t the publish time, %a the attributes as JSON, %% a percent sign; \n and \t are known, and a
newline is added. On a terminal control characters are escaped.

Examples:
  ordo tail orders
      messages as they are stored, until Ctrl-C
  ordo tail orders --key user-7 -f '%t %d'
      those of one key, as time and data
  ordo tail orders --filter 'attributes.tier = "gold"' --count 10 --json
      the next ten with this attribute, as JSON lines

Exit status:
  0  --count were shown      1  refused by the broker      2  no broker there, or it went away
  255  wrong usage
)";

inline constexpr const char* kRedriveExamples = R"(
Each dead letter is published to the topic that it came from (or --to another), without what
dead-lettering added to it, and then acknowledged: one key in order, keys side by side. Stopped in
between it may publish a message a second time when run again; it never loses one. What comes to the
subscription meanwhile stays there.

Examples:
  ordo redrive billing-dead --dry-run
      how many there are, by origin and key
  ordo redrive billing-dead --key user-7
      those of one key
  ordo redrive billing-dead --to orders-repaired
      all of them, elsewhere

Exit status:
  0  all were put back      1  some are left, or the broker refused      2  no broker there
  130  stopped by Ctrl-C      255  wrong usage
)";

inline constexpr const char* kDemoExamples = R"(
Makes the topic and the subscription 'ordo-demo', publishes messages of some keys in order, and
consumes them; a few keys fail for ever, so that there is something to look at. It ends by itself
or with Ctrl-C; what it made stays to be looked at until --clean.

Examples:
  ordo demo
      a minute of traffic; look at the status page, or at 'ordo keys ordo-demo --blocked'
  ordo demo --for 10m --rate 1000 --keys 100 --bad 5
      more of it
  ordo demo --clean
      delete what it made

Exit status:
  0  done      1  refused by the broker      2  no broker there, or it went away
  255  wrong usage
)";

inline constexpr const char* kBenchExamples = R"(
Opens a broker of its own in a temporary folder, measures it and removes it: how long one durable
publish takes, and how many messages a second are published, consumed and acknowledged in batches.
The broker is used in the process, without a network. Every publish is synced to the disk of --dir.

Examples:
  ordo bench
      about ten seconds
  ordo bench --seconds 1 --size 1KiB
      a shorter look, with larger messages
  ordo bench --dir /srv --json
      the disk below /srv, for a script

Exit status:
  0  measured      1  it could not be      130  stopped by Ctrl-C      255  wrong usage
)";

}  // namespace ordo::app
